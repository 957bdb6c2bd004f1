"""A release makes stale files and nothing else, with one process or several."""

import multiprocessing
import os
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


def release_in_steps(folder: Path, jobs: int = 1) -> tuple[int, dict[Path, bool]]:
    """How many steps it took, and the files, with whether each was another before."""
    load_bank.cache_clear()  # as in a process of its own
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
    """The folder of a tiny course that has just been released."""
    release_in_steps(tiny_copy)
    return tiny_copy


def test_where_nothing_changed_nothing_is_made_and_the_files_are_the_same(
    released_course,
):
    original = content(released_course)
    steps, written = release_in_steps(released_course)
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
        "an unlisted wrong attempt less": (lambda folder: (folder / WRONG).unlink(), True),
        "a hint": (
            edit(TEXTS, "How many numbers are in the mean", "How many are in the mean"),
            True,
        ),
        "the row of course.yaml": (
            edit("course.yaml", "How many numbers have", "How many have"),
            True,
        ),
        "a remark": (edit(SOLUTION, HEAD, f"{HEAD}# a remark that students read\n"), False),
        "words for a misconception that no mutant has": (add(TEXTS, NO_MUTANTS_WORDS), False),
        "another place": (lambda folder: folder.rename(folder.with_name("elsewhere")), False),
    },
)
def test_what_an_exercise_is_made_from_makes_its_files_stale_and_nothing_else_does(
    released_course, change, is_stale
):
    change(released_course)
    folder = released_course if released_course.exists() else released_course.with_name("elsewhere")
    assert (release_in_steps(folder)[0] > 0) is is_stale
    assert release_in_steps(folder)[0] == 0


def test_a_remark_that_students_read_is_released(released_course):
    edit(SOLUTION, HEAD, f"{HEAD}# a remark\n")(released_course)
    assert list(release_in_steps(released_course)[1].values()) == [True, True, False], (
        "but the recording"
    )


def test_an_exercise_that_another_engine_made_is_made_anew(released_course, monkeypatch):
    monkeypatch.setattr(recording_file, "FORMAT", recording_file.FORMAT + 1)
    steps, written = release_in_steps(released_course)
    assert (steps, list(written.values())) == (1, [False, False, True])
    assert release_in_steps(released_course)[0] == 0


@pytest.mark.parametrize("name", [SCRIPT, FINGERPRINTS])
@pytest.mark.parametrize(
    "harm", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-20])]
)
def test_what_is_missing_or_damaged_is_made_again_as_it_was(released_course, name, harm):
    original = content(released_course)
    harm(released_course / name)
    assert [path for path, is_new in release_in_steps(released_course)[1].items() if is_new] == [
        released_course / name
    ]
    assert content(released_course) == original


PATIENCE = 120.0  # seconds: a busy machine is slow


def test_two_processes_write_what_one_writes(two_means):
    (two_means / FINGERPRINTS).unlink()
    original = content(two_means)
    release_in_steps(two_means, 2)
    by_two = content(two_means)
    for name in by_two.keys() - original.keys():
        (two_means / name).unlink()
    release_in_steps(two_means, 1)
    assert content(two_means) == by_two
    assert "exercises/averages/fingerprints/02_last_mean.safetensors" in by_two


def test_what_is_wrong_with_one_exercise_ends_the_release_with_its_sentence(
    two_means,
):
    checks = two_means / "grader" / "checks" / "test_last_mean.py"
    checks.write_text(
        checks.read_text().replace("mean_by_hand(x))", "mean_by_hand(x) + 1)"), encoding="utf-8"
    )
    then = (
        r"Next: mend it in 02_last_mean\.py, or that check in test_last_mean\.py, "
        r"then course release last_mean"
    )
    with pytest.raises(CourseError, match=rf"the reference of last_mean fails values: .*\. {then}"):
        release_in_steps(two_means, 2)
    assert not (two_means / "exercises/averages/fingerprints/02_last_mean.safetensors").exists()
    assert multiprocessing.active_children() == []


WAITS = """
import multiprocessing, os, pathlib, time

if multiprocessing.parent_process() is not None:
    pathlib.Path({folder!r}, str(os.getpid())).touch()
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_ends_every_process_and_leaves_every_file_as_it_was(two_means, tmp_path):
    at_work = tmp_path / "at_work"
    at_work.mkdir()
    checks = two_means / "grader" / "checks" / "test_last_mean.py"
    checks.write_text(checks.read_text() + WAITS.format(folder=str(at_work)), encoding="utf-8")
    # else there is one exercise to record, and no second process
    (two_means / FINGERPRINTS).unlink()
    original = content(two_means)
    code = (
        "import manyheads.judge.judge_process as c; c.usable_cpu_count = lambda: 2; import "
        "manyheads.cli; manyheads.cli.main()"
    )
    process = start(
        sys.executable, "-c", f"import sys; sys.argv = ['course', 'release']; {code}", cwd=two_means
    )
    wait_until(lambda: len(list(at_work.iterdir())) == 2)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in output
    wait_until(lambda: all(has_ended(path.name) for path in at_work.iterdir()))
    assert content(two_means) == original


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)
