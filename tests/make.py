"""What tests are made of: copies of courses, attempts, and results with what a test does not ask
about filled in.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from rich.console import Console, RenderableType

from manyheads import cli
from manyheads.box.connection import Box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load, Reply, Traced
from manyheads.box.worker.wire import LENGTH, encode
from manyheads.result import CheckResult, ExerciseResult, Outcome, Result, with_total

REPOSITORY = Path(__file__).parents[1]
TINY = REPOSITORY / "tests" / "tiny_course"

RIGHT = (TINY / "grader" / "right" / "running_mean" / "loop.py").read_text(encoding="utf-8")
WRONG = RIGHT.replace("x[: t + 1].mean()", "x[: t + 1].sum() / len(x)")
BY_SUMS = (
    "import torch\n\n\ndef running_mean(x):\n    assert len(x)\n"
    "    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n"
)
CLASS = {
    "ada": BY_SUMS,
    "ben": BY_SUMS.replace("x.new_ones(len(x)).cumsum(0)", "len(x)"),
    "cat": "import os\n\n\ndef running_mean(x):\n    os._exit(0)\n",
    "dan": "def running_mean(x:\n",
    "eve": BY_SUMS.replace("x.cumsum(0)", "x.detach().cumsum(0)"),
}
# A box of another test that is proved at this moment has its canary in the course's folder.
NOT_OF_THE_COURSE = shutil.ignore_patterns("__pycache__", ".course", ".git", ".canary-*")


COURSE = (sys.executable, "-m", "manyheads")  # as a process of its own


def cases(names: str, rows: Mapping[str, object]) -> pytest.MarkDecorator:
    """Parametrize a test with the rows of a table: by the sentence that names it, the value or the
    tuple of values that each of these names has.
    """
    return pytest.mark.parametrize(names, list(rows.values()), ids=list(rows))


def read_table(name: str) -> dict[str, Any]:
    """Read a table of texts in a YAML file below this folder."""
    return yaml.safe_load((REPOSITORY / "tests" / name).read_text(encoding="utf-8"))


def run(
    *command: object, cwd: Path | None = None, input_text: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program that finds this repository, tell it this, and hear it out."""
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "NO_COLOR": "1", **environment}
    arguments = [*map(str, command)]
    return subprocess.run(
        arguments, cwd=cwd, env=env, input=input_text, capture_output=True, text=True, check=False
    )


def start(*command: object, **options: Any) -> subprocess.Popen[str]:
    """Start a program that finds this repository, as the leader of a process group of its own; its
    words go one way.
    """
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(
        [*map(str, command)], env=env, start_new_session=True, **streams, **options
    )


def git(folder: Path, *arguments: str, at: str = "") -> str:
    """What git says, with nobody's configuration. at: the time of a commit, which is now where it
    is not given.
    """
    env = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {
            f"GIT_{role}_NAME": "school",
            f"GIT_{role}_EMAIL": "school@example.org",
            **({f"GIT_{role}_DATE": at} if at else {}),
        }
    command = [
        "git",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "protocol.file.allow=always",
        *arguments,
    ]
    completed = subprocess.run(command, cwd=folder, capture_output=True, env=env, check=False)
    assert completed.returncode == 0, completed.stderr.decode()
    return completed.stdout.decode().strip()


def replies(
    box: Box, limits: Limits, load: str | Load, *calls: Call, seconds: float = 20.0
) -> list[Reply]:
    """What an attempt in a process of its own answers to these calls; where there are none, to
    being loaded.
    """
    connection = box.attempt(limits)
    try:
        loaded = connection.ask(
            Load(load, "attempt.py") if isinstance(load, str) else load, max(seconds, 20.0)
        )
        assert loaded.raised is None, loaded.raised
        return [connection.ask(call, seconds) for call in calls] or [loaded]
    finally:
        connection.close()


def payload(message: Reply | Traced) -> bytes:
    """A message as an attempt sends it, without its length."""
    return encode(message)[LENGTH.size :]


def copy_course(source: Path, target: Path) -> Path:
    """A course of one's own, to write to."""
    return shutil.copytree(source, target, ignore=NOT_OF_THE_COURSE)


def with_last_mean(folder: Path) -> Path:
    """Add a second exercise to a copy of the tiny course: the first one under another name, not
    released.
    """
    scripts = [f"{room}/averages/01_running_mean.py" for room in ("solutions", "exercises")]
    for path in [
        *scripts,
        "grader/checks/test_running_mean.py",
        "grader/misconceptions/running_mean.py",
    ]:
        text = (folder / path).read_text(encoding="utf-8").replace("running_mean", "last_mean")
        (folder / path.replace("01_running", "02_last").replace("running", "last")).write_text(
            text, encoding="utf-8"
        )
    course = folder / "course.yaml"
    text = course.read_text(encoding="utf-8")
    row = text[text.index("      - id: running_mean") :]
    course.write_text(text + row.replace("running", "last"), encoding="utf-8")
    return folder


def notebook(*sources: object) -> str:
    """A notebook's text with these code cells."""
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its path there, without what git and Python keep."""
    files = (
        p
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not {".git", "__pycache__"} & {*p.parts}
    )
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def edit_text(text: str, *pairs: tuple[str, str]) -> str:
    """The text with each second of a pair in place of the first, which must be there."""
    for old, new in pairs:
        assert old in text, f"{old!r} is not in the text"
        text = text.replace(old, new)
    return text


def replace(path: Path, old: str, new: str) -> None:
    """Put another text in place of one that stands in a file once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, text
    path.write_text(text.replace(old, new), encoding="utf-8")


def edit(name: str, old: str, new: str) -> Callable[[Path], object]:
    """Replace a text that stands once in a file of the folder that is given later."""
    return lambda folder: replace(folder / name, old, new)


def write(name: str, text: str) -> Callable[[Path], object]:
    """Write a file of the folder that is given later anew."""
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def add(name: str, text: str) -> Callable[[Path], object]:
    """Write a file of the folder that is given later, or append to it."""

    def change(folder: Path) -> None:
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(text)

    return change


def hand_in(folder: Path, attempts: Mapping[str, str | None]) -> Path:
    """A folder of submissions to the tiny course. Each says whose it is: the same text would be
    judged once.
    """
    for student, source in attempts.items():
        path = folder / student / "averages" / "01_running_mean.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        if source is not None:
            path.write_text(f"{source}# {student}\n", encoding="utf-8")
    return folder


def check(
    id_: str, score: float = 0, most: float = 1, outcome: Outcome = "failed", **overrides: Any
) -> CheckResult:
    """With all its points it passed, whatever `outcome` says. The title is its id."""
    fields = {
        "id": id_,
        "title": id_,
        "outcome": "passed" if score == most else outcome,
        "score": score,
    }
    return CheckResult(**{**fields, "max_score": most, **overrides})


def exercise(id_: str, *checks: CheckResult, **overrides: Any) -> ExerciseResult:
    """Its points are those of its checks."""
    score, most = sum(check.score for check in checks), sum(check.max_score for check in checks)
    return ExerciseResult(
        **{"id": id_, "score": score, "max_score": most, "checks": checks, **overrides}
    )


def result(
    student: str, *exercises: ExerciseResult, assignment: str = "averages", **overrides: Any
) -> Result:
    """Its points are those of its exercises."""
    fields = {
        "student": student,
        "assignment": assignment,
        "score": 0,
        "max_score": 0,
        "device": "cpu",
        "seed": 0,
    }
    empty = Result(**{**fields, "isolation": "namespaces", "versions": {}, "exercises": ()})
    return with_total(empty, exercises).model_copy(update=overrides)


def printed_lines(
    rendered: RenderableType, width: int = 100, soft_wrap: bool = False, **options: Any
) -> list[str]:
    """The lines that a terminal shows of this, without blanks at the ends."""
    buffer = io.StringIO()
    Console(file=buffer, width=width, highlight=False, **options).print(
        rendered, soft_wrap=soft_wrap
    )
    return [line.rstrip() for line in buffer.getvalue().rstrip().splitlines()]


def besides_progress(stderr: str) -> str:
    """What a command said on stderr besides its progress, of which a busy machine writes more
    lines.
    """
    return "".join(
        line for line in stderr.splitlines(True) if not re.match(r"(grading|recording): \d+ ", line)
    )


def call_course(
    *arguments: object, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command `course` in this process, where no attempt and no process is tested."""
    out, err = io.StringIO(), io.StringIO()
    words = [*map(str, arguments)]
    env = {"COLUMNS": "100", "NO_COLOR": "1", **environment}
    with (
        chdir(cwd),
        mock.patch.dict(os.environ, env),
        mock.patch.object(sys, "argv", ["course", *words]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        status = cli._run()
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())
