"""A release with several processes: the bytes of one process, one sentence for what went wrong, and nothing left behind."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.authoring.release_exercises import write_release
from manyheads.box.procstat import has_ended
from manyheads.course import CourseError, load_course
from manyheads.judge.run_checks import Catalogue
from tests.make import content, start

pytestmark = pytest.mark.journey

PATIENCE = 120.0  # seconds: a busy machine is slow


def release(folder: Path, jobs: int) -> None:
    course = load_course(folder)
    write_release(course, Catalogue(course), jobs=jobs)


def test_two_processes_write_what_one_writes(two_means: Path) -> None:
    before = content(two_means)
    release(two_means, 2)
    by_two = content(two_means)
    for name in by_two.keys() - before.keys():
        (two_means / name).unlink()
    release(two_means, 1)
    assert content(two_means) == by_two
    assert "exercises/averages/fingerprints/02_last_mean.safetensors" in by_two


def test_what_is_wrong_with_one_exercise_ends_the_release_with_its_sentence(two_means: Path) -> None:
    checks = two_means / "grader" / "checks" / "test_last_mean.py"
    checks.write_text(checks.read_text().replace("mean_by_hand(x))", "mean_by_hand(x) + 1)"), encoding="utf-8")
    then = r"Next: mend it in 02_last_mean\.py, or that check in test_last_mean\.py, then course release last_mean"
    with pytest.raises(CourseError, match=rf"the reference of last_mean fails values: .*\. {then}"):
        release(two_means, 2)
    assert not (two_means / "exercises/averages/fingerprints/02_last_mean.safetensors").exists()
    assert multiprocessing.active_children() == []


WAITS = """
import multiprocessing, os, pathlib, time

if multiprocessing.parent_process() is not None:
    pathlib.Path({folder!r}, str(os.getpid())).touch()
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_ends_every_process_and_leaves_every_file_as_it_was(two_means: Path, tmp_path: Path) -> None:
    at_work = tmp_path / "at_work"
    at_work.mkdir()
    checks = two_means / "grader" / "checks" / "test_last_mean.py"
    checks.write_text(checks.read_text() + WAITS.format(folder=str(at_work)), encoding="utf-8")
    before = content(two_means)
    code = "import manyheads.judge.process_ties as c; c.usable = lambda: 2; import manyheads.cli; manyheads.cli.main()"
    process = start(sys.executable, "-c", f"import sys; sys.argv = ['course', 'release']; {code}", cwd=two_means)
    wait_until(lambda: len(list(at_work.iterdir())) == 2)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in said
    wait_until(lambda: all(has_ended(path.name) for path in at_work.iterdir()))
    assert content(two_means) == before


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)
