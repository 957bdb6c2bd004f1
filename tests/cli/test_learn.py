"""`course hint`, as a student at midnight asks it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.make import RIGHT, TINY

DIVIDES_BY_ALL = RIGHT.replace("x[: t + 1].mean()", "x[: t + 1].sum() / len(x)")
DOES_NOT_HOLD = RIGHT.replace(".mean()", ".mean() * 0.731")
SCRIPT = "exercises/averages/01_running_mean.py"

Ask = Callable[[], list[str]]


@pytest.fixture
def student_copy(student_copy: Path) -> Path:
    """A folder as a student has it, with a mistake in it."""
    (student_copy / SCRIPT).write_text(DIVIDES_BY_ALL, encoding="utf-8")
    return student_copy


@pytest.fixture
def ask(run_course: Run, student_copy: Path) -> Ask:
    def ask() -> list[str]:
        done = run_course("hint", "running_mean", cwd=student_copy)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return ask


def test_the_next_step_each_time_it_is_asked(ask: Ask) -> None:
    title = "You divided by the length of x everywhere."
    first = "Hint 1 of 3: How many numbers are in the mean at position 0?"
    assert ask() == [title, first, "Next: course hint running_mean"]
    assert ask()[1] == "Hint 2 of 3: Look at the line that divides or adds."


def test_where_nothing_can_be_kept_the_first_step_and_that_it_is_not_remembered(ask: Ask, student_copy: Path) -> None:
    kept = student_copy / ".course"
    shutil.rmtree(kept, ignore_errors=True)
    kept.write_text("a file in the way, for which root has no way round either")
    for _ in range(2):
        _, first, forgets, _ = ask()
        assert first == "Hint 1 of 3: How many numbers are in the mean at position 0?"
        assert forgets.startswith(f"The step is not remembered: {kept}/hints.json cannot be written (")


@pytest.mark.parametrize("command", ["hint", "trace", "plot"])
def test_without_a_name_and_a_check_it_is_asked_which_is_meant(run_course, student_copy, command):
    done = run_course(command, cwd=student_copy)
    following = f"Next: course {command} running_mean"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"course: {command} which exercise? None was checked here yet. {following}\n"


def test_without_a_name_it_is_of_what_was_checked_last(run_course: Run, student_copy: Path) -> None:
    run_course("check", "running_mean", cwd=student_copy)
    assert run_course("hint", cwd=student_copy).stdout.endswith("Next: course hint running_mean\n")
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    run_course("check", cwd=student_copy)
    assert run_course("hint", cwd=student_copy).stdout.startswith("running_mean needs no hint")
    assert "Next: course check running_mean" in run_course("trace", cwd=student_copy).stdout


def test_after_the_last_hint_the_same_is_not_repeated_in_silence(ask: Ask, student_copy: Path) -> None:
    (student_copy / SCRIPT).write_text(DOES_NOT_HOLD, encoding="utf-8")
    said = [ask() for _ in range(3)]
    assert [each[-1] for each in said] == [f"Next: course {c} running_mean" for c in ("hint", "trace", "trace")]
    assert said[2][1] == "That was the last hint. Here it is again."


def test_an_untouched_stub_gets_the_exercises_hint_and_a_right_answer_none(ask: Ask, student_copy: Path) -> None:
    shutil.copy(TINY / SCRIPT, student_copy / SCRIPT)
    hint = next(line for line in (TINY / "course.yaml").read_text().splitlines() if "hint:" in line)
    title, first, following = ask()
    assert (title, following) == ("Nothing is written here yet.", "Next: course hint running_mean")
    assert first.removeprefix("Hint 1 of 3: ") in hint
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    assert ask() == ["running_mean needs no hint: every check passes.", "Next: course status"]


@pytest.mark.parametrize(("source", "said", "hint"), [
    pytest.param("def running_mean(x):\n    import os\n    os._exit(0)\n", "process",
        "Hint 1 of 2: The whole process ended", id="ends the process"),
    pytest.param("def running_mean(x):\n    import time\n    while True: time.sleep(0.01)\n",
        "It was still in the loop on line 3", "Hint 1 of 2: Which loop has no end?", id="has no end"),
    pytest.param("import torch\n\n\ndef running_mean(x):\n    return x + {}[1]\n", "This does not hold yet: ",
        "Hint 1 of 2: Python stopped on line 5. Look at what goes into it.", id="an exception"),
    pytest.param(DOES_NOT_HOLD, "This does not hold yet: ",
        "Hint 1 of 2: Look at line 7: one small change there makes every check pass.", id="a mistake without a name"),
])  # fmt: skip
def test_what_no_misconception_explains_gets_a_hint_about_that_and_no_other(ask, student_copy, source, said, hint):
    (student_copy / SCRIPT).write_text(source, encoding="utf-8")
    title, first, _ = ask()
    assert said in title
    assert first.startswith(hint)


@pytest.mark.parametrize("command", ["hint", "check", "trace", "plot"])
def test_a_file_that_is_gone_is_got_back_by_git(run_course: Run, student_copy: Path, command: str) -> None:
    for file in (student_copy / SCRIPT).parent.glob("01_running_mean.*"):
        file.unlink()
    done = run_course(command, "running_mean", cwd=student_copy / "exercises")
    said = "01_running_mean.py is not here.\nNext: git checkout averages/01_running_mean.py\n"
    refused = (done.returncode, done.stdout, done.stderr)
    assert refused == ((1, said, "") if command == "check" else (2, "", f"course: {said}"))


@pytest.mark.parametrize(("name", "command"), [
    ("01_running_mean (1).py", ["check", "1"]),
    ("01_runningmean.py", ["check"]),
    ("1_running_mean.py", ["hint", "1"]),
    ("mean FINAL.py", ["check", "1"]),
    ("Untitled.py", ["check"]),
])  # fmt: skip
def test_a_file_under_another_name_is_to_be_renamed(run_course, student_copy, name, command):
    (student_copy / SCRIPT).rename((student_copy / SCRIPT).with_name(name))  # the notebook beside it is untouched
    done = run_course(*command, cwd=student_copy)
    assert done.returncode == (1 if command[0] == "check" else 2)
    assert (done.stdout + done.stderr).removeprefix("course: ") == (
        f"01_running_mean.py is not here, and {name} is not read.\n"
        "Rename it to 01_running_mean.py.\nNext: course check running_mean\n"
    )


@pytest.mark.parametrize("command", ["trace", "plot"])
def test_a_notebook_that_was_saved_half_way_is_to_be_mended(run_course: Run, student_copy: Path, command: str) -> None:
    (student_copy / SCRIPT).unlink()
    notebook = (student_copy / SCRIPT).with_suffix(".ipynb")
    notebook.write_bytes(notebook.read_bytes()[:700])
    done = run_course(command, "running_mean", cwd=student_copy)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "course: This is not a notebook that can be read: save it again from Jupyter.\n"
        f"Mend the file.\nNext: course {command} running_mean\n"
    )
