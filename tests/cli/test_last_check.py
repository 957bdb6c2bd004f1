"""A file that has not changed since its last check is not run again, and what has changed is."""

import os
import shutil
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from manyheads.cli import last_check
from manyheads.cli.last_check import exercise_meant, facts, keep, last_result
from manyheads.course import CourseError, Exercise, load_course
from manyheads.submission import AttemptSource
from tests import make
from tests.conftest import Run
from tests.make import RIGHT, WRONG

TIMES = count(10**18)
SCRIPT = "exercises/averages/01_running_mean.py"
NOT_KEPT = "note: this result cannot be kept here, and course status will not know of it."
TORCH_IMPORTED = """
import sys
from manyheads.cli.app import app
try:
    app(sys.argv[1:])
except SystemExit:
    pass
print("torch" in sys.modules, file=sys.stderr)
"""


@pytest.fixture
def exercise(student_copy: Path) -> Exercise:
    return next(iter(load_course(student_copy).exercises))


@pytest.fixture
def ran(student_copy: Path, tmp_path: Path) -> Callable[[], bool]:
    """Whether the student's file was run since this was last asked. Its right attempt notes that it runs."""
    noted = tmp_path / "noted"
    (student_copy / SCRIPT).write_text(f"open({str(noted)!r}, 'a').write('x')\n{RIGHT}")

    def ask() -> bool:
        found = noted.exists()
        noted.unlink(missing_ok=True)
        return found

    return ask


def test_what_one_command_has_run_no_other_runs_again(run_course, student_copy, ran):
    first = run_course("status", cwd=student_copy)
    assert ran()
    assert run_course("status", cwd=student_copy).stdout == first.stdout
    check = run_course("check", cwd=student_copy)
    assert check.stdout.startswith("✓ 01 The running mean")
    assert "unchanged since its last check; --fresh runs it again\n" in check.stdout
    assert "needs no hint" in run_course("hint", "running_mean", cwd=student_copy).stdout
    assert not ran()


@pytest.mark.parametrize("arguments", [["status"], ["check"]], ids=["status", "check"])
def test_fresh_runs_it_anyway(run_course, student_copy, ran, arguments):
    run_course("check", cwd=student_copy)
    assert ran()
    assert "unchanged" not in run_course(*arguments, "--fresh", cwd=student_copy).stdout
    assert ran()


def test_a_file_that_has_changed_is_run_again(run_course: Run, student_copy: Path, ran: Callable[[], bool]) -> None:
    run_course("check", cwd=student_copy)
    assert ran()
    with (student_copy / SCRIPT).open("a") as file:
        file.write("\n# one more line\n")
    assert "unchanged" not in run_course("check", cwd=student_copy).stdout
    assert ran()


def test_an_attempt_without_an_end_is_run_again_by_check_alone(run_course: Run, student_copy: Path) -> None:
    """A busy machine may have been the cause, and who asks to check it wants to know."""
    text = (student_copy / "course.yaml").read_text()
    (student_copy / "course.yaml").write_text(
        text.replace("seconds_per_call: 2", "seconds_per_call: 0.5").replace("attempt: 6", "attempt: 1")
    )
    (student_copy / SCRIPT).write_text(
        "import time\n\n\ndef running_mean(x):\n    while True:\n        time.sleep(0.01)\n"
    )
    for _ in range(2):
        said = run_course("check", cwd=student_copy).stdout
        assert "It was still in the loop on line 5 when its time was up: does it end?" in said
        assert "unchanged" not in said


def test_where_nothing_has_changed_status_does_not_import_torch(student_copy: Path) -> None:
    (student_copy / SCRIPT).write_text(WRONG)
    twice = [make.run(sys.executable, "-c", TORCH_IMPORTED, "status", cwd=student_copy) for _ in range(2)]
    assert [(done.returncode, done.stderr) for done in twice] == [(0, "True\n"), (0, "False\n")]


SOURCE = AttemptSource("01_running_mean.py", WRONG)
RESULT = make.exercise("running_mean", score=2, max_score=4)


def test_a_result_holds_good_for_its_own_text_alone(exercise: Exercise) -> None:
    keep(exercise, SOURCE, RESULT)
    assert last_result(exercise, SOURCE) == RESULT
    assert last_result(exercise, AttemptSource(SOURCE.name, RIGHT)) is None
    assert last_result(exercise, AttemptSource("01_running_mean.ipynb", WRONG)) is None


def rewrite(path: Path) -> None:
    """The same text, with one more line at its end."""
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize("package", ["manyheads", "torch"])
def test_another_version_ends_what_was_kept(exercise: Exercise, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(exercise, SOURCE, RESULT)
    version = last_check._version
    monkeypatch.setattr(last_check, "_version", lambda name: "another" if name == package else version(name))
    last_check._versions.cache_clear()
    assert last_result(exercise, SOURCE) is None
    monkeypatch.undo()
    last_check._versions.cache_clear()
    assert last_result(exercise, SOURCE) == RESULT


@pytest.mark.parametrize("file", ["course.yaml", "exercises/averages/fingerprints/01_running_mean.safetensors"])
def test_other_recorded_answers_or_limits_end_what_was_kept(exercise: Exercise, student_copy: Path, file: str) -> None:
    keep(exercise, SOURCE, RESULT)
    rewrite(student_copy / file)
    assert last_result(exercise, SOURCE) is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"key": 1}', b"\xff"])
def test_a_damaged_file_is_as_good_as_none(exercise: Exercise, student_copy: Path, damage: bytes) -> None:
    keep(exercise, SOURCE, RESULT)
    (kept,) = (student_copy / ".course" / "last-check").iterdir()
    kept.write_bytes(damage)
    assert last_result(exercise, SOURCE) is None
    assert facts(exercise).checks
    keep(exercise, SOURCE, RESULT)
    assert last_result(exercise, SOURCE) == RESULT


def test_where_nothing_can_be_written_nothing_is_kept(exercise: Exercise, student_copy: Path) -> None:
    (student_copy / ".course").write_text("a file where the folder should be")
    keep(exercise, SOURCE, RESULT)
    assert last_result(exercise, SOURCE) is None
    assert facts(exercise).checks


@pytest.mark.parametrize("full", [True, False])
def test_a_result_that_cannot_be_kept_is_told_and_counts(run_course: Run, student_copy: Path, full: bool) -> None:
    """A file where the folder should be stands for a disk that is full or read-only."""
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    if full:
        (student_copy / last_check.FOLDER).touch()
    done = run_course("check", "running_mean", cwd=student_copy)
    assert (done.returncode, NOT_KEPT in done.stdout) == (0, full)
    assert "0 of " not in done.stdout


def test_of_what_was_checked_last_what_is_not_done_comes_first(two_means: Path) -> None:
    course = load_course(two_means)
    first, second = course.exercises
    shutil.copy(first.fingerprints, second.fingerprints)
    failed = make.exercise("mean", make.check("mean"))
    done = failed.model_copy(update={"checks": ()})
    with pytest.raises(CourseError, match=r"^trace which exercise\? None was checked here yet\. Next: course trace "):
        exercise_meant(course, None, "trace")
    for exercise, result, expected in (
        (second, failed, second),
        (first, failed, first),
        (second, failed, second),
        (first, done, second),
        (second, done, second),
        (first, done, first),
    ):
        keep(exercise, AttemptSource(exercise.script.name, "x = 1\n"), result)
        os.utime(last_check._path(exercise), ns=(next(TIMES), next(TIMES)))  # a clock may be coarse
        assert exercise_meant(course, None, "hint") == expected
