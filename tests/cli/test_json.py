"""Internal: --watch does not end by itself, so tests choose which files are saved.

The outputs of `course check` for programs (--json, which follows the shipped schema, and --format
lines for editors), and `course check --watch` on a real terminal.
"""

import json
import os
import pty
import re
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import jsonschema
import jupytext
import pytest
import yaml

import manyheads
from manyheads.authoring.templates import as_they_are
from manyheads.cli.check import watch_saves
from manyheads.cli.options import open_console
from manyheads.course import load_course
from manyheads.student.check_and_keep_result import Checks
from tests import make
from tests.make import COURSE, REPOSITORY, RIGHT, TINY, WRONG, add, call_course, run, start

SCHEMA = json.loads(
    Path(manyheads.__file__).with_name("result.schema.json").read_text(encoding="utf-8")
)
EXERCISE_SCHEMA = {"$defs": SCHEMA["$defs"], "$ref": "#/$defs/ExerciseResult"}
SCRIPT, NOTEBOOK = (
    "exercises/averages/01_running_mean.py",
    "exercises/averages/01_running_mean.ipynb",
)
SUMS = RIGHT.replace("mean()", "sum()")
LINE = next(number for number, line in enumerate(SUMS.splitlines(), 1) if "sum()" in line)
IDS = yaml.safe_load((TINY / "grader" / "texts.yaml").read_text(encoding="utf-8"))
STUB = (TINY / SCRIPT).read_text(encoding="utf-8")


@pytest.fixture
def save_and_run(run_course, student_copy):
    """Return a function that saves an attempt and runs a command with --json.

    It returns the exit status and the only exercise of the JSON.
    """

    def run_json(source, *arguments):
        (student_copy / SCRIPT).write_text(source, encoding="utf-8")
        completed = run_course(*arguments, "--json", cwd=student_copy)
        assert completed.stderr == ""
        (exercise,) = json.loads(completed.stdout)["exercises"]
        jsonschema.validate(exercise, EXERCISE_SCHEMA, jsonschema.Draft202012Validator)
        assert [id_ for id_ in IDS if f'"{id_}"' in completed.stdout] == []
        return completed.returncode, exercise

    return run_json


def test_check_json_gives_line_title_and_hint_of_a_mistake(save_and_run, run_course, student_copy):
    status, exercise = save_and_run(SUMS, "check")
    text = run_course("check", cwd=student_copy)
    output = " ".join(text.stdout.split())
    (misconception,) = exercise["diagnosis"]
    (line,) = exercise["lines"]
    assert (status, text.returncode, line["line"], line["edit"]) == (1, 1, LINE, "")
    assert misconception["title"].removesuffix(".") in output
    assert misconception["hint"] in output
    hints = {check["hint"] for check in exercise["checks"]}
    assert hints == {""}, "hints are shown only with their misconceptions"


@pytest.mark.parametrize("command", ["check", "status"])
def test_json_of_a_right_attempt_shows_that_all_checks_passed(save_and_run, command):
    status, exercise = save_and_run(RIGHT, command)
    assert (status, exercise["score"]) == (0, exercise["max_score"])
    assert {check["outcome"] for check in exercise["checks"]} == {"passed"}
    assert {function["state"] for function in exercise["functions"]} == {"right"}


@pytest.mark.parametrize(
    ("source", "name", "line"),
    [
        pytest.param(
            "x = 1\n\ndef running_mean(x):\n    return x.mean(\n", "", "4:5", id="a syntax error"
        ),
        pytest.param(
            "x = 1\n\ndef running_mean(x):\n    return x.nothing\n",
            "running_mean: ",
            "4:5",
            id="an exception",
        ),
        pytest.param(
            "x = 1\n\ndef running_mean(x):\n    y = 7\n    return x * y\n",
            "running_mean: ",
            "3:1",
            id="wrong values without a known line",
        ),
        pytest.param("x = 1\ny = 2\n", "running_mean: ", "1:1", id="no definition"),
        pytest.param(SUMS, "running_mean: ", f"{LINE}:", id="wrong values with a known line"),
    ],
)
def test_lines_format_gives_the_position_of_the_error_or_of_the_definition(
    failed_check_lines, student_copy, source, name, line
):
    (student_copy / SCRIPT).write_text(source, encoding="utf-8")
    (message,) = failed_check_lines(FORCE_COLOR="1")  # as in a task of VS Code
    assert message.startswith(f"{SCRIPT}:{line}"), message
    assert f" error: {name}" in message


@pytest.fixture
def failed_check_lines(run_course, student_copy):
    """Return a function that runs `course check --format lines` and returns its lines."""

    def check(*names, **environment):
        arguments = ("check", *names, "--format", "lines")
        completed = run_course(*arguments, cwd=student_copy, env=environment)
        assert (completed.returncode, completed.stderr) == (1, "")
        return completed.stdout.splitlines()

    return check


def test_lines_format_names_the_cell_of_a_notebook(failed_check_lines, student_copy):
    raises = RIGHT.replace("x[: t + 1].mean()", "x[: t + 1].nothing()")
    jupytext.write(jupytext.reads(raises, fmt="py:percent"), student_copy / NOTEBOOK)
    (message,) = failed_check_lines()
    assert message.startswith(f"{NOTEBOOK}:1:1: error: running_mean: ")
    assert " of code cell " in message


def test_check_names_the_script_if_script_and_notebook_are_untouched(run_course, student_copy):
    output = run_course("check", "running_mean", cwd=student_copy).stdout
    assert output.endswith(
        f"\nWrite running_mean, on line 11 of {SCRIPT}.\nNext: course check running_mean\n"
    )


def test_status_json_includes_an_exercise_that_is_not_started(save_and_run):
    status, exercise = save_and_run(STUB, "status")
    assert (status, exercise["note"], exercise["score"]) == (0, "not started", 0.0)
    assert exercise["checks"] == []


def test_json_and_lines_formats_report_a_missing_file(failed_check_lines, run_course, student_copy):
    for name in (SCRIPT, NOTEBOOK):
        (student_copy / name).unlink()
    completed = run_course("check", "running_mean", "--json", cwd=student_copy)
    (exercise,) = json.loads(completed.stdout)["exercises"]
    assert (completed.returncode, exercise["checks"]) == (1, [])
    assert "is not here" in exercise["note"]
    (line,) = failed_check_lines("running_mean")
    assert line.startswith(f"{SCRIPT}:1:1: error: 01_running_mean.py is not here.")


TASK = json.loads(dict(as_they_are("class"))[".vscode/tasks.json"])["tasks"][0]
MATCHER = TASK["problemMatcher"]


def check_output(output):
    """Return the output of one check, between the two lines that mark a check for VS Code."""
    assert re.search(MATCHER["background"]["beginsPattern"], output.readline())
    lines = []
    while not re.search(MATCHER["background"]["endsPattern"], line := output.readline()):
        assert line, "it has ended"
        lines.append(line.removesuffix("\n"))
    return lines


def test_watch_task_of_vs_code_lists_the_problems_after_each_save(
    student_copy,
):
    process = start(*COURSE, *TASK["args"], cwd=student_copy)
    assert check_output(process.stdout) == []  # nothing is started yet
    (student_copy / SCRIPT).write_text(SUMS, encoding="utf-8")
    (line,) = check_output(process.stdout)
    pattern = MATCHER["pattern"]
    match = re.search(pattern["regexp"], line)
    fields = [match[pattern[name]] for name in ("file", "line", "column", "severity")]
    assert fields == [SCRIPT, str(LINE), "5", "error"], "the fields that VS Code reads"
    assert match[pattern["message"]].startswith("running_mean: You summed without dividing")
    assert " Hint: " in line
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    assert check_output(process.stdout) == []
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def test_watch_and_json_options_cannot_be_combined(student_copy):
    completed = call_course("check", "--watch", "--json", cwd=student_copy)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.endswith("Next: course check --json\n")


def test_language_server_without_pygls_says_how_to_install_it(student_copy):
    (student_copy / "pygls.py").write_text(
        "raise ModuleNotFoundError('no pygls', name='pygls')\n", encoding="utf-8"
    )
    completed = run(
        *COURSE, "lsp", cwd=student_copy, PYTHONPATH=f"{student_copy}{os.pathsep}{REPOSITORY}"
    )
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.startswith("course: course lsp needs pygls")
    assert "-m pip install --constraint constraints.txt pygls" in completed.stderr


TIMEOUT_SECONDS = 60.0  # after which a test fails


class Terminal:
    """`course check --watch` on a terminal of its own."""

    def __init__(self, folder):
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            terminal = {"PYTHONPATH": str(REPOSITORY), "TERM": "xterm", "COLUMNS": "200"}
            os.execve(sys.executable, [*COURSE, "check", "--watch"], {**os.environ, **terminal})
        self._unread = ""

    def read_until(self, pattern):
        """Return everything up to a match of this pattern, without colours."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not (match := re.search(pattern, self._unread, re.DOTALL)):
            assert time.monotonic() < deadline, self._unread
            if select.select([self._terminal], [], [], 1.0)[0]:
                data = os.read(self._terminal, 65536).decode("utf-8", "replace")
                self._unread += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data)
        text, self._unread = self._unread[: match.end()], self._unread[match.end() :]
        return text

    def interrupt(self):
        """Press Ctrl-C, and return the exit status."""
        os.write(self._terminal, b"\x03")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def save(folder: Path, text: str) -> None:
    """Save the script as most editors do: write a new file, and rename it to the old name."""
    new = folder / "exercises" / "averages" / ".saving"
    new.write_text(text, encoding="utf-8")
    new.replace(folder / SCRIPT)


ALL_DONE = r"All done.\s+What you save is checked. Ctrl-C ends this"


def test_watch_on_a_terminal_checks_every_save(student_copy):
    save(student_copy, RIGHT)
    terminal = Terminal(student_copy)
    terminal.read_until(ALL_DONE)
    # a file that is saved at once, before the watch begins, is also checked
    save(student_copy, WRONG)
    output = terminal.read_until("Ctrl-C ends this").lower()
    # shown while the check runs: an endless loop takes until the timeout
    assert "checking 01 the running mean" in output
    assert "divided by" in output
    save(student_copy, "def running_mean(x:\n")
    assert "Python cannot read your file" in terminal.read_until("Ctrl-C ends this")
    save(student_copy, RIGHT)
    assert "✓ 01 The running mean" in terminal.read_until(ALL_DONE)
    save(student_copy, WRONG)
    assert "divided by" in terminal.read_until("Ctrl-C ends this").lower()
    assert terminal.interrupt() == 0


def test_watch_checks_an_unfinished_exercise_once_at_the_start(student_copy, monkeypatch):
    save(student_copy, WRONG)
    course, checked = load_course(student_copy), []

    def run(checks, attempt):
        checked.append(attempt.exercise.id)
        return make.exercise(attempt.exercise.id, make.check("values"))

    monkeypatch.setattr(Checks, "_run", run)
    monkeypatch.setattr("manyheads.cli.check._saves", lambda named, exercise: iter((exercise,)))
    watch_saves(Checks(course), open_console(), course.exercises)
    assert checked == ["running_mean"]


@pytest.fixture
def whole_course(tmp_path, monkeypatch):
    """Return a student's folder of the real course.

    No attempt is run: it passes if "right" is in its last line.
    """
    shutil.copytree(REPOSITORY / "exercises", tmp_path / "exercises")
    shutil.copy(REPOSITORY / "course.yaml", tmp_path)

    def run(_, attempt):
        outcome = "passed" if "right" in attempt.source.text.splitlines()[-1] else "failed"
        return make.exercise(attempt.exercise.id, make.check("values", outcome=outcome))

    monkeypatch.setattr(Checks, "_run", run)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def watch_output(whole_course, capsys, monkeypatch):
    """Return a function that watches the first exercise, saves it once, and returns the output."""

    def watch():
        course = load_course(whole_course)
        monkeypatch.setattr("manyheads.cli.check._saves", lambda _, exercise: iter((exercise,)))
        watch_saves(Checks(course), open_console(), course.exercises[:1])
        return " ".join(capsys.readouterr().out.split())

    return watch


FIRST, SECOND = (
    f"exercises/multi_head_attention/{name}.py"
    for name in ("01_attention_scores", "02_causal_mask")
)


def test_watch_names_the_next_function_after_an_exercise_passes(whole_course, watch_output):
    add(FIRST, "\nright = 1\n")(whole_course)
    output = watch_output()
    assert "✓ 01 Attention scores" in output
    text_before_function = (whole_course / SECOND).read_text().partition("def causal_mask")[0]
    assert (
        "Go on with 02 The causal mask: write causal_mask, on line "
        f"{text_before_function.count(chr(10)) + 1} of {SECOND}. What you save"
    ) in output
    assert "course check causal_mask" not in output


def test_watch_checks_the_next_exercise_if_it_is_started(whole_course, watch_output):
    add(FIRST, "\nright = 1\n")(whole_course)
    add(SECOND, "\nwrong = 1\n")(whole_course)
    output = r"✓ 01 Attention scores.*✗ 02 The causal mask.*Next: course \w+ causal_mask"
    assert re.search(output, watch_output())


def test_watch_of_one_exercise_includes_the_following_exercises(whole_course, monkeypatch):
    course, watched = load_course(whole_course), []
    monkeypatch.setattr(
        "manyheads.cli.check._saves", lambda named, _: watched.extend(named) or iter(())
    )
    watch_saves(Checks(course), open_console(), course.exercises[:1])
    assert watched == list(course.exercises)
