"""`--json`: one object, valid by the shipped schema, with the words and the exit status of the command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import jupytext
import pytest
import yaml

import manyheads
from tests.conftest import Run
from tests.make import RIGHT, TINY

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
