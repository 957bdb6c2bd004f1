"""Internal: which exercise a command without a name means, after six checks that are not run.

The result of the last check is kept: an unchanged file is not run again, a changed file is.
"""

import os
import shutil
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from manyheads.cli.student import meant_exercises
from manyheads.course import Course, CourseError, load_course
from manyheads.result import ProvedLine
from manyheads.student import check_and_keep_result
from manyheads.student.check_and_keep_result import OwnAttempt, kept_path
from manyheads.submission import Source
from tests import make
from tests.make import RIGHT, WRONG

TIMES = count(10**18)  # increasing times of files, in nanoseconds
SCRIPT = "exercises/averages/01_running_mean.py"
NOT_KEPT = "note: this result cannot be kept here, and course status will not know of it."
# runs `course`, then prints whether torch was imported
PRINT_TORCH_IMPORTED = """
import sys
from manyheads.cli.app import app
try:
    app(sys.argv[1:])
except SystemExit:
    pass
print("torch" in sys.modules, file=sys.stderr)
"""
RESULT = make.exercise("running_mean", score=2, max_score=4)


@pytest.fixture
def student_course(student_copy: Path) -> Course:
    """Return the tiny course as a student has it."""
    return load_course(student_copy)


def own_attempt(
    course: Course, source: str = WRONG, name: str = "01_running_mean.py"
) -> OwnAttempt:
    """Return an attempt at the first exercise, which the student has changed."""
    return OwnAttempt(course, course.exercises[0], Source(name, source), True)


@pytest.fixture
def was_run(student_copy: Path, tmp_path: Path) -> Callable[[], bool]:
    """Write a right attempt that leaves a trace when it runs.

    Return a function that says whether it has run since the previous call of that function.
    """
    marker = tmp_path / "noted"
    (student_copy / SCRIPT).write_text(f"open({str(marker)!r}, 'a').write('x')\n{RIGHT}")

    def has_run_since() -> bool:
        has_run = marker.exists()
        marker.unlink(missing_ok=True)
        return has_run

    return has_run_since


def test_commands_do_not_run_an_unchanged_attempt_again(run_course, student_copy, was_run):
    completed = run_course("status", cwd=student_copy)
    assert was_run()
    assert run_course("status", cwd=student_copy).stdout == completed.stdout
    check = run_course("check", cwd=student_copy)
    assert check.stdout.startswith("✓ 01 The running mean")
    assert "unchanged since its last check; --fresh runs it again\n" in check.stdout
    assert "needs no hint" in run_course("hint", "running_mean", cwd=student_copy).stdout
    assert not was_run()
    for command in ("status", "check"):
        assert "unchanged" not in run_course(command, "--fresh", cwd=student_copy).stdout
        assert was_run()
    with (student_copy / SCRIPT).open("a") as file:
        file.write("\n# one more line\n")
    assert "unchanged" not in run_course("check", cwd=student_copy).stdout
    assert was_run()


def test_check_runs_an_attempt_again_after_a_timeout(run_course, student_copy):
    """A busy machine may have caused the timeout, so `course check` tries again."""
    text = (student_copy / "course.yaml").read_text()
    (student_copy / "course.yaml").write_text(
        text.replace("seconds_per_call: 2", "seconds_per_call: 0.5").replace(
            "attempt: 6", "attempt: 1"
        )
    )
    (student_copy / SCRIPT).write_text(
        "import time\n\n\ndef running_mean(x):\n    while True:\n        time.sleep(0.01)\n"
    )
    for _ in range(2):
        output = run_course("check", cwd=student_copy).stdout
        assert "It was still in the loop on line 5 when its time was up: does it end?" in output
        assert "unchanged" not in output


def test_a_wrong_line_is_kept_for_later_checks_of_the_same_text(student_course, monkeypatch):
    """On a busy machine a later search may time out before it finds the line again."""
    check = make.check("sum", function="running_mean")
    with_line = make.exercise("running_mean", check, lines=(ProvedLine(line=7),))
    without_line = make.exercise("running_mean", check)
    passed = make.exercise("running_mean", make.check("sum", outcome="passed", score=1.0))
    results = iter([with_line, without_line, passed])
    monkeypatch.setattr(check_and_keep_result.Checks, "_run", lambda *_: next(results))
    runs = [check_and_keep_result.Checks(student_course, fresh=True) for _ in range(3)]
    lines = [checks.result(own_attempt(student_course)).lines for checks in runs]
    assert lines == [with_line.lines, with_line.lines, ()]


def test_status_does_not_import_torch_if_nothing_has_changed(student_copy):
    (student_copy / SCRIPT).write_text(WRONG)
    runs = [
        make.run(sys.executable, "-c", PRINT_TORCH_IMPORTED, "status", cwd=student_copy)
        for _ in range(2)
    ]
    # the first run checks the attempt, which needs torch; the second reads the kept result
    assert [(completed.returncode, completed.stderr) for completed in runs] == [
        (0, "True\n"),
        (0, "False\n"),
    ]


def test_a_kept_result_is_discarded_if_the_engine_has_changed(student_course, monkeypatch):
    own_attempt(student_course).keep(RESULT)
    versions = check_and_keep_result.versions()
    assert {version.split()[0] for version in versions} >= {"manyheads", "torch"}
    status = os.stat(check_and_keep_result.__file__)
    assert f"check_and_keep_result.py {status.st_mtime_ns} {status.st_size}" in versions
    for changed_versions in (versions[1:], (*versions[:-1], f"{versions[-1]}0")):
        monkeypatch.setattr(
            check_and_keep_result, "versions", lambda versions=changed_versions: versions
        )
        assert own_attempt(student_course).last_result is None


KEPT_RESULT = f".course/{check_and_keep_result.NAME}/averages.01_running_mean.json"


@pytest.mark.parametrize(
    ("changed_file", "damage"),
    [
        ("course.yaml", None),
        ("exercises/averages/fingerprints/01_running_mean.safetensors", None),
        *((KEPT_RESULT, damage) for damage in (b"", b"{", b"[]", b'{"key": 1}', b"\xff")),
    ],
)
def test_a_kept_result_is_discarded_if_its_inputs_change_or_it_is_damaged(
    student_course, student_copy, changed_file, damage
):
    own_attempt(student_course).keep(RESULT)
    assert (
        own_attempt(student_course).last_result,
        own_attempt(student_course, RIGHT).last_result,
    ) == (RESULT, None)
    assert own_attempt(student_course, name="01_running_mean.ipynb").last_result is None
    path = student_copy / changed_file
    path.write_bytes(path.read_bytes() + b"\n" if damage is None else damage)
    assert own_attempt(student_course).last_result is None
    own_attempt(student_course).keep(RESULT)
    assert own_attempt(student_course).last_result == RESULT


@pytest.mark.parametrize("is_full", [True, False], ids=["full disk", "free disk"])
def test_check_prints_a_note_if_its_result_cannot_be_kept(run_course, student_copy, is_full):
    """A file in place of the folder has the same effect as a full or read-only disk."""
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    if is_full:
        (student_copy / check_and_keep_result.FOLDER).touch()
    completed = run_course("check", "running_mean", cwd=student_copy)
    assert (completed.returncode, NOT_KEPT in completed.stdout) == (0, is_full)
    assert "0 of " not in completed.stdout


def test_commands_without_a_name_choose_the_last_checked_unfinished_exercise(two_means):
    course = load_course(two_means)
    first, second = course.exercises
    shutil.copy(first.fingerprints, second.fingerprints)
    failed = make.exercise("mean", make.check("mean"))
    passed = failed.model_copy(update={"checks": ()})
    with pytest.raises(
        CourseError,
        match=r"^trace which exercise\? None was checked here yet\. Next: course trace ",
    ):
        meant_exercises(course, None, "trace")
    for checked_exercise, result, meant_exercise in (
        (second, failed, second),
        (first, failed, first),
        (second, failed, second),
        (first, passed, second),
        (second, passed, second),
        (first, passed, first),
    ):
        OwnAttempt(
            course, checked_exercise, Source(checked_exercise.script.name, "x = 1\n"), True
        ).keep(result)
        # set the time: clocks of file systems may be coarse
        os.utime(kept_path(checked_exercise), ns=(next(TIMES), next(TIMES)))
        assert meant_exercises(course, None, "hint").exercise == meant_exercise
