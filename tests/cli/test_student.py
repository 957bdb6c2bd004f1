"""`course hint`: its hints, their order, and what it says if a file is missing or damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.make import RIGHT, TINY

# an attempt with a known misconception, and one without
DIVIDES_BY_ALL = RIGHT.replace("x[: t + 1].mean()", "x[: t + 1].sum() / len(x)")
DOES_NOT_HOLD = RIGHT.replace(".mean()", ".mean() * 0.731")
SCRIPT = "exercises/averages/01_running_mean.py"

Ask = Callable[[], list[str]]


@pytest.fixture
def copy_with_mistake(student_copy: Path) -> Path:
    """Return a student's folder whose attempt has a mistake."""
    (student_copy / SCRIPT).write_text(DIVIDES_BY_ALL, encoding="utf-8")
    return student_copy


@pytest.fixture
def ask_for_hint(run_course: Run, copy_with_mistake: Path) -> Ask:
    """Return a function that runs `course hint running_mean` and returns its lines."""

    def ask() -> list[str]:
        completed = run_course("hint", "running_mean", cwd=copy_with_mistake)
        assert (completed.returncode, completed.stderr) == (0, "")
        return completed.stdout.splitlines()

    return ask


def test_repeated_hint_commands_show_successive_hints(ask_for_hint):
    title = "You divided by the length of x everywhere."
    first_hint = "Hint 1 of 3: How many numbers are in the mean at position 0?"
    assert ask_for_hint() == [title, first_hint, "Next: course hint running_mean"]
    assert ask_for_hint()[1] == "Hint 2 of 3: Look at the line that divides or adds."


def test_hint_stays_at_the_first_step_if_its_state_cannot_be_written(
    ask_for_hint, copy_with_mistake
):
    state_folder = copy_with_mistake / ".course"
    shutil.rmtree(state_folder, ignore_errors=True)
    state_folder.write_text("a file in the way, for which root has no way round either")
    for _ in range(2):
        _, first_hint, warning, _ = ask_for_hint()
        assert first_hint == "Hint 1 of 3: How many numbers are in the mean at position 0?"
        assert warning.startswith(
            f"The step is not remembered: {state_folder}/hints.json cannot be written ("
        )


@pytest.mark.parametrize("command", ["hint", "trace", "plot"])
def test_commands_ask_for_an_exercise_if_none_was_checked(run_course, copy_with_mistake, command):
    completed = run_course(command, cwd=copy_with_mistake)
    next_step = f"Next: course {command} running_mean"
    assert (completed.returncode, completed.stdout) == (2, "")
    assert (
        completed.stderr
        == f"course: {command} which exercise? None was checked here yet. {next_step}\n"
    )


def test_hint_and_trace_without_a_name_use_the_last_checked_exercise(run_course, copy_with_mistake):
    run_course("check", "running_mean", cwd=copy_with_mistake)
    assert run_course("hint", cwd=copy_with_mistake).stdout.endswith(
        "Next: course hint running_mean\n"
    )
    (copy_with_mistake / SCRIPT).write_text(RIGHT, encoding="utf-8")
    run_course("check", cwd=copy_with_mistake)
    assert run_course("hint", cwd=copy_with_mistake).stdout.startswith("running_mean needs no hint")
    assert run_course("trace", cwd=copy_with_mistake).stdout.endswith("Next: course status\n")


def test_hint_announces_that_it_repeats_the_last_hint(ask_for_hint, copy_with_mistake):
    (copy_with_mistake / SCRIPT).write_text(DOES_NOT_HOLD, encoding="utf-8")
    hints = [ask_for_hint() for _ in range(4)]
    assert [lines[-1] for lines in hints] == [
        f"Next: course {c} running_mean" for c in ("hint", "hint", "trace", "trace")
    ]
    assert hints[3][1] == "That was the last hint. Here it is again."


def test_an_untouched_stub_gets_the_hint_of_course_yaml_and_a_right_attempt_none(
    ask_for_hint, copy_with_mistake
):
    shutil.copy(TINY / SCRIPT, copy_with_mistake / SCRIPT)
    hint = next(line for line in (TINY / "course.yaml").read_text().splitlines() if "hint:" in line)
    title, first_hint, next_step = ask_for_hint()
    assert (title, next_step) == ("Nothing is written here yet.", "Next: course hint running_mean")
    assert first_hint.removeprefix("Hint 1 of 3: ") in hint
    (copy_with_mistake / SCRIPT).write_text(RIGHT, encoding="utf-8")
    assert ask_for_hint() == [
        "running_mean needs no hint: every check passes.",
        "Next: course status",
    ]


@pytest.mark.parametrize(
    ("source", "title_part", "hint_start"),
    [
        pytest.param(
            "def running_mean(x):\n    import os\n    os._exit(0)\n",
            "process",
            "Hint 1 of 2: The whole process ended",
            id="an exit of the process",
        ),
        pytest.param(
            "def running_mean(x):\n    import time\n    while True: time.sleep(0.01)\n",
            "It was still in the loop on line 3",
            "Hint 1 of 2: Which loop has no end?",
            id="an endless loop",
        ),
        pytest.param(
            "import torch\n\n\ndef running_mean(x):\n    return x + {}[1]\n",
            "It raised KeyError on line 5",
            "Hint 1 of 2: Python stopped on line 5. Look at what goes into it.",
            id="an exception",
        ),
        pytest.param(
            DOES_NOT_HOLD,
            "It does not do this yet: ",
            "Hint 1 of 3: Look at line 7: one small change there makes every check pass.",
            id="wrong values without a known misconception",
        ),
    ],
)
def test_hint_describes_the_failure_if_no_misconception_explains_it(
    ask_for_hint, copy_with_mistake, source, title_part, hint_start
):
    (copy_with_mistake / SCRIPT).write_text(source, encoding="utf-8")
    title, first_hint, _ = ask_for_hint()
    assert title_part in title
    assert first_hint.startswith(hint_start)


RENAME = "Rename it to 01_running_mean.py.\nNext: course check running_mean\n"
RESTORE = "Next: git checkout exercises/averages/01_running_mean.py\n"
REPAIR = (
    "This is not a notebook that can be read: save it again from Jupyter.\nMend the file.\n"
    "Next: course trace running_mean\n"
)


@pytest.mark.parametrize(
    # name: the file in place of the script, or "" if script and notebook are deleted
    ("name", "command", "remedy"),
    [
        *(
            pytest.param("", command, RESTORE, id=f"no file to {command}")
            for command in ("check 1", "hint 1", "trace 1", "plot 1")
        ),
        ("01_running_mean (1).py", "check 1", RENAME),
        ("01_runningmean.py", "check", RENAME),
        ("1_running_mean.py", "hint 1", RENAME),
        ("mean FINAL.py", "check 1", RENAME),
        ("Untitled.py", "check", RENAME),
        pytest.param("01_running_mean.ipynb", "trace 1", REPAIR, id="a truncated notebook"),
    ],
)
def test_commands_say_how_to_fix_a_missing_misnamed_or_damaged_file(
    run_course, copy_with_mistake, name, command, remedy
):
    """If the script has another name, the untouched notebook stays beside it."""
    script, notebook = (
        copy_with_mistake / SCRIPT,
        (copy_with_mistake / SCRIPT).with_suffix(".ipynb"),
    )
    text = notebook.read_bytes()[:700] if name == notebook.name else script.read_bytes()
    script.unlink()
    if name in ("", notebook.name):
        notebook.unlink()
    if name:
        script.with_name(name).write_bytes(text)
        prefix = (
            f"01_running_mean.py is not here, and {name} is not read.\n" if remedy == RENAME else ""
        )
    else:
        prefix = "01_running_mean.py is not here.\n"
    completed = run_course(*command.split(), cwd=copy_with_mistake)
    is_check = command.startswith("check")
    expected = (1, f"{prefix}{remedy}", "") if is_check else (2, "", f"course: {prefix}{remedy}")
    assert (completed.returncode, completed.stdout, completed.stderr) == expected
