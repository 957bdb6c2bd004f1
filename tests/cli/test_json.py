"""What is wrong as data: --json, valid by the shipped schema; --format lines, as an editor and VS Code's tasks.json read it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import jsonschema
import jupytext
import pytest
import yaml

import manyheads
from manyheads.authoring.templates import as_they_are
from tests.conftest import Run
from tests.make import COURSE, REPOSITORY, RIGHT, TINY, run

SCHEMA = json.loads(Path(manyheads.__file__).with_name("evidence.schema.json").read_text(encoding="utf-8"))
SCRIPT, NOTEBOOK = "exercises/averages/01_running_mean.py", "exercises/averages/01_running_mean.ipynb"
WRONG = RIGHT.replace("mean()", "sum()")
LINE = next(number for number, line in enumerate(WRONG.splitlines(), 1) if "sum()" in line)
IDS = yaml.safe_load((TINY / "grader" / "texts.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def asked(run_course: Run, student_copy: Path) -> Callable[..., tuple[int, dict[str, Any]]]:
    """The exit status, and what is told of the one exercise, after this text was saved."""

    def asked(source: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        (student_copy / SCRIPT).write_text(source, encoding="utf-8")
        done = run_course(*arguments, "--json", cwd=student_copy)
        assert done.stderr == ""
        told = json.loads(done.stdout)
        assert [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(told)] == []
        assert (told["version"], told["command"]) == (1, arguments[0])
        assert not [id_ for id_ in IDS if f'"{id_}"' in done.stdout]
        (exercise,) = told["exercises"]
        return done.returncode, exercise

    return asked


def test_a_mistake_is_told_with_its_line_its_title_and_its_hint(asked, run_course, student_copy):
    status, told = asked(WRONG, "check")
    wrong = [check for check in told["checks"] if check["outcome"] != "passed"]
    text = run_course("check", cwd=student_copy)
    assert (status, told["state"], told["next"]) == (1, "in progress", "course hint running_mean")
    assert (told["file"], text.returncode) == (SCRIPT, 1)
    assert wrong
    for check in wrong:
        assert (check["line"], check["function"], check["hint_level"]) == (LINE, "running_mean", 1)
        assert check["misconception"].removesuffix(".") in " ".join(text.stdout.split())
        assert check["hint"] in " ".join(text.stdout.split())


def test_what_is_right_is_told_with_status_0(asked):
    status, told = asked(RIGHT, "check")
    assert (status, told["state"], told["next"]) == (0, "done", "")
    assert {check["outcome"] for check in told["checks"]} == {"passed"}
    assert {function["state"] for function in told["functions"]} == {"right"}


@pytest.mark.parametrize(("source", "function", "line"), [
    pytest.param("x = 1\n\ndef running_mean(x):\n    return x.mean(\n", "", 4, id="what cannot be parsed"),
    pytest.param("x = 1\n\ndef running_mean(x):\n    return x.nothing\n", "running_mean", 4, id="an exception"),
    pytest.param("x = 1\n\ndef running_mean(x):\n    y = 7\n    return x * y\n", "running_mean", 3, id="nothing proved"),
    pytest.param("x = 1\ny = 2\n", "running_mean", 1, id="no definition"),
])  # fmt: skip
def test_the_line_is_that_of_the_exception_or_else_of_the_definition(asked, source, function, line):
    status, told = asked(source, "check")
    (wrong,) = [each for each in told["functions"] if each["state"] in ("wrong", "undefined")]
    assert (status, wrong["function"], wrong["line"]) == (1, function, line)


def test_in_a_notebook_the_line_is_told_with_its_cell(asked, run_course, student_copy):
    notebook = jupytext.reads(RIGHT.replace("x[: t + 1].mean()", "x[: t + 1].nothing()"), fmt="py:percent")
    jupytext.write(notebook, student_copy / NOTEBOOK)
    stub = (TINY / SCRIPT).read_text(encoding="utf-8")
    _, told = asked(stub, "check")
    (wrong,) = [each for each in told["functions"] if each["state"] == "wrong"]
    assert told["file"] == NOTEBOOK
    assert f"on line {wrong['line_in_cell']} of code cell {wrong['cell']}" in wrong["evidence"]


def test_of_two_untouched_stubs_the_script_is_told(run_course, student_copy):
    for command in ("check", "status"):
        done = run_course(command, "--json", *(["running_mean"] if command == "check" else []), cwd=student_copy)
        (told,) = json.loads(done.stdout)["exercises"]
        assert told["file"] == SCRIPT
    assert {function["line"] for function in told["functions"]} <= {11}
    said = run_course("check", "running_mean", cwd=student_copy).stdout
    assert said.endswith(f"\nWrite running_mean, on line 11 of {SCRIPT}.\nNext: course check running_mean\n")


def test_check_knows_how_many_hints_were_shown(asked, run_course, student_copy):
    for level in (1, 2):
        _, told = asked(WRONG, "check")  # which shows the first
        assert {check["hint_level"] for check in told["checks"] if check["outcome"] != "passed"} == {level}
        run_course("hint", "running_mean", cwd=student_copy)


def test_status_tells_what_is_not_begun(asked):
    stub = (TINY / SCRIPT).read_text(encoding="utf-8")
    status, told = asked(stub, "status")
    assert (status, told["state"], told["score"], told["checks"]) == (0, "untouched", 0.0, [])
    status, told = asked(RIGHT, "status")
    assert (status, told["state"], len(told["checks"]) > 1) == (0, "done", True)


def test_a_file_that_is_missing_is_told_in_the_object_with_status_1(run_course, student_copy):
    for name in (SCRIPT, NOTEBOOK):
        (student_copy / name).unlink()
    done = run_course("check", "running_mean", "--json", cwd=student_copy)
    (told,) = json.loads(done.stdout)["exercises"]
    assert (done.returncode, told["state"], "is not here" in told["problem"]) == (1, "missing", True)


TOLD = f"{SCRIPT}:{LINE}:5: error: running_mean: You summed without dividing"
TASK = json.loads(dict(as_they_are("class"))[".vscode/tasks.json"])["tasks"][0]
MATCHER = TASK["problemMatcher"]


def cycle(output: IO[str]) -> list[str]:
    """The lines between one that begins checking and the one that ends it, as VS Code finds them."""
    assert re.search(MATCHER["background"]["beginsPattern"], output.readline())
    lines = []
    while not re.search(MATCHER["background"]["endsPattern"], line := output.readline()):
        assert line, "it has ended"
        lines.append(line.removesuffix("\n"))
    return lines


@pytest.fixture
def task(student_copy: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start what tasks.json starts; Ctrl-C ends it."""
    started = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "manyheads", *TASK["args"]]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        process = subprocess.Popen(command, cwd=student_copy, env=environment, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130)  # 130 where it still imports what tells of saves


def test_what_is_wrong_is_a_line_with_its_place_its_sentence_and_its_hint(run_course: Run, student_copy: Path) -> None:
    (student_copy / SCRIPT).write_text(WRONG, encoding="utf-8")
    done = run_course(
        "check", "--format", "lines", cwd=student_copy, env={"FORCE_COLOR": "1"}
    )  # as in a task's terminal
    (line,) = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (1, "")
    assert line.startswith(TOLD)
    assert " Hint: " in line
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    done = run_course("check", "--format", "lines", cwd=student_copy)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_of_a_notebook_the_sentence_names_the_cell(run_course: Run, student_copy: Path) -> None:
    jupytext.write(jupytext.reads(WRONG, fmt="py:percent"), student_copy / NOTEBOOK)
    (line,) = run_course("check", "--format", "lines", cwd=student_copy).stdout.splitlines()
    assert line.startswith(f"{NOTEBOOK}:1:1: error: ")
    assert "of code cell" in line


def test_each_save_gives_all_that_is_wrong_and_nothing_when_it_is_mended(task, student_copy: Path) -> None:
    process = task()
    assert cycle(process.stdout) == []  # nothing is begun
    (student_copy / SCRIPT).write_text(WRONG, encoding="utf-8")
    (line,) = cycle(process.stdout)
    assert line.startswith(TOLD)
    (student_copy / SCRIPT).write_text(RIGHT, encoding="utf-8")
    assert cycle(process.stdout) == []


def test_vs_code_finds_file_line_column_and_sentence(task, student_copy: Path) -> None:
    (student_copy / SCRIPT).write_text(WRONG, encoding="utf-8")
    (line,) = cycle(task().stdout)
    pattern = MATCHER["pattern"]
    found = re.search(pattern["regexp"], line)
    parts = [found[pattern[name]] for name in ("file", "line", "column", "severity")]
    assert parts == [SCRIPT, str(LINE), "5", "error"]
    assert found[pattern["message"]].startswith("running_mean: You summed")


def test_watching_gives_no_json(run_course: Run, student_copy: Path) -> None:
    done = run_course("check", "--watch", "--json", cwd=student_copy)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("Next: course check --json\n")


def test_without_its_package_the_server_says_what_to_install(student_copy: Path) -> None:
    (student_copy / "pygls.py").write_text("raise ModuleNotFoundError('no pygls', name='pygls')\n", encoding="utf-8")
    done = run(*COURSE, "lsp", cwd=student_copy, PYTHONPATH=f"{student_copy}{os.pathsep}{REPOSITORY}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("course: course lsp needs pygls")
    assert "-m pip install --constraint constraints.txt pygls" in done.stderr
