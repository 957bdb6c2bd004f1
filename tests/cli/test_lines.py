"""`course check --format lines`: what is wrong, as an editor reads it; and the tasks.json that reads it in VS Code."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import jupytext
import pytest

from manyheads.authoring.templates import as_they_are
from tests.conftest import Run
from tests.make import COURSE, REPOSITORY, RIGHT, run

SCRIPT, NOTEBOOK = "exercises/averages/01_running_mean.py", "exercises/averages/01_running_mean.ipynb"
WRONG = RIGHT.replace("mean()", "sum()")
LINE = next(number for number, line in enumerate(WRONG.splitlines(), 1) if "sum()" in line)
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
    done = run_course("check", "--format", "lines", cwd=student_copy)
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
