"""`course release` rebuilds only stale files, with one process or several."""

import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from manyheads.authoring.release_exercises import write_release
from manyheads.box.host_processes import has_ended
from manyheads.checks.runner import namespace_of
from manyheads.course import CourseError, load_course
from manyheads.diagnosis import load_bank, recording_file
from manyheads.judge.run_hidden_checks import Catalogue
from tests.make import add, cases, content, edit, start

pytestmark = pytest.mark.journey

SOLUTION = "solutions/averages/01_running_mean.py"
CHECKS = "grader/checks/test_running_mean.py"
BANK = "grader/misconceptions/running_mean.py"
RIGHT = "grader/right/running_mean/loop.py"
WRONG = "grader/wrong/running_mean/median.py"
TEXTS = "grader/texts.yaml"
HEAD = "# # 1 · The running mean\n"
SCRIPT = "exercises/averages/01_running_mean.py"
FINGERPRINTS = "exercises/averages/fingerprints/01_running_mean.safetensors"


def release(folder: Path, jobs: int = 1) -> tuple[int, dict[Path, bool]]:
    """Release the course in this folder.

    Returns:
        The number of steps (exercises to record), and for each released file whether it changed.
    """
    load_bank.cache_clear()  # as in a new process
    namespace_of.cache_clear()
    steps = []

    @contextmanager
    def progress(total: int) -> Iterator[Callable[[], None]]:
        steps.append(total)
        yield lambda: None

    course = load_course(folder)
    written = write_release(course, Catalogue(course), jobs=jobs, show_progress=progress)
    return steps[0], written


@pytest.fixture
def released_course(tiny_copy: Path) -> Path:
    """Return the folder of a tiny course that has just been released."""
    release(tiny_copy)
    return tiny_copy


def test_a_release_without_changes_records_and_writes_nothing(
    released_course,
):
    original = content(released_course)
    steps, written = release(released_course)
    files = [
        released_course / name for name in (SCRIPT, SCRIPT.replace(".py", ".ipynb"), FINGERPRINTS)
    ]
    assert (steps, written) == (0, dict.fromkeys(files, False))
    assert content(released_course) == original


NO_MUTANTS_WORDS = (
    "\nno_mutant_of_this:\n  title: unused\n  explanation: none\n  hints: [a, b, c]\n"
)


@cases(
    "change, is_stale",
    {
        "the solution": (edit(SOLUTION, "    return", "    assert x.dim() == 1\n    return"), True),
        "a check's title": (edit(CHECKS, "averages all that came", "averages what came"), True),
        "the checks' conftest": (add("grader/checks/conftest.py", "A = 1\n"), True),
        "a mutant": (edit(BANK, '"len(x)"', '"len(x) + 0"'), True),
        "a right attempt": (add(RIGHT, "A = 1\n"), True),
        "an unlisted wrong attempt": (add(WRONG, "A = 1\n"), True),
        "an unlisted wrong attempt removed": (lambda folder: (folder / WRONG).unlink(), True),
        "a hint": (
            edit(TEXTS, "How many numbers are in the mean", "How many are in the mean"),
            True,
        ),
        "the row of course.yaml": (
            edit("course.yaml", "How many numbers have", "How many have"),
            True,
        ),
        "a comment": (edit(SOLUTION, HEAD, f"{HEAD}# a remark that students read\n"), False),
        "words for a misconception that no mutant has": (add(TEXTS, NO_MUTANTS_WORDS), False),
        "another folder": (lambda folder: folder.rename(folder.with_name("elsewhere")), False),
    },
)
def test_a_change_makes_a_recording_stale_only_if_it_is_a_source_of_it(
    released_course, change, is_stale
):
    change(released_course)
    folder = released_course if released_course.exists() else released_course.with_name("elsewhere")
    assert (release(folder)[0] > 0) is is_stale
    assert release(folder)[0] == 0


def test_a_changed_comment_is_released_without_a_new_recording(released_course):
    edit(SOLUTION, HEAD, f"{HEAD}# a remark\n")(released_course)
    assert list(release(released_course)[1].values()) == [True, True, False], (
        "script and notebook change, the recording does not"
    )


def test_a_recording_in_another_format_is_made_again(released_course, monkeypatch):
    monkeypatch.setattr(recording_file, "FORMAT", recording_file.FORMAT + 1)
    steps, written = release(released_course)
    assert (steps, list(written.values())) == (1, [False, False, True])
    assert release(released_course)[0] == 0


@pytest.mark.parametrize("name", [SCRIPT, FINGERPRINTS])
@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-20])]
)
def test_a_missing_or_damaged_file_is_restored(released_course, name, damage):
    original = content(released_course)
    damage(released_course / name)
    assert [path for path, is_new in release(released_course)[1].items() if is_new] == [
        released_course / name
    ]
    shutil.rmtree(released_course / ".course", ignore_errors=True)  # what the release remembers
    assert content(released_course) == original


TIMEOUT = 120.0  # seconds: a busy machine is slow


def test_two_processes_write_the_same_files_as_one(two_means):
    (two_means / FINGERPRINTS).unlink()
    original = content(two_means)
    release(two_means, 2)
    written_by_two = content(two_means)
    for name in written_by_two.keys() - original.keys():
        (two_means / name).unlink()
    release(two_means, 1)
    assert content(two_means) == written_by_two
    assert "exercises/averages/fingerprints/02_last_mean.safetensors" in written_by_two


def test_an_error_in_one_exercise_ends_the_release_with_its_message(
    two_means,
):
    checks = two_means / "grader" / "checks" / "test_last_mean.py"
    checks.write_text(
        checks.read_text().replace("mean_by_hand(x))", "mean_by_hand(x) + 1)"), encoding="utf-8"
    )
    next_step = (
        r"Next: mend it in 02_last_mean\.py, or that check in test_last_mean\.py, "
        r"then course release last_mean"
    )
    with pytest.raises(
        CourseError, match=rf"the reference of last_mean fails values: .*\. {next_step}"
    ):
        release(two_means, 2)
    assert not (two_means / "exercises/averages/fingerprints/02_last_mean.safetensors").exists()
    assert multiprocessing.active_children() == []


WAIT_IN_CHILD_PROCESS = """
import multiprocessing, os, pathlib, time

if multiprocessing.parent_process() is not None:
    pathlib.Path({folder!r}, str(os.getpid())).touch()
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_ends_all_processes_and_changes_no_file(two_means, tmp_path):
    running_processes = tmp_path / "at_work"
    running_processes.mkdir()
    checks = two_means / "grader" / "checks" / "test_last_mean.py"
    checks.write_text(
        checks.read_text() + WAIT_IN_CHILD_PROCESS.format(folder=str(running_processes)),
        encoding="utf-8",
    )
    # two exercises are stale now, so that two processes are started
    (two_means / FINGERPRINTS).unlink()
    original = content(two_means)
    code = (
        "import manyheads.judge.judge_process as c; c.usable_cpu_count = lambda: 2; import "
        "manyheads.cli; manyheads.cli.main()"
    )
    process = start(
        sys.executable, "-c", f"import sys; sys.argv = ['course', 'release']; {code}", cwd=two_means
    )
    wait_until(lambda: len(list(running_processes.iterdir())) == 2)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130
    assert "Traceback" not in output
    wait_until(lambda: all(has_ended(path.name) for path in running_processes.iterdir()))
    assert content(two_means) == original


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until the condition holds, and fail after TIMEOUT seconds."""
    deadline = time.monotonic() + TIMEOUT
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
