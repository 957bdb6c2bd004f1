"""Three graders of the six functions, each with a class laid out as it wants it: `course grade`,
nbgrader, plain pytest.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import BinaryIO

from .six_checks import CHECKS, NAME, RIGHT, SETUP, hidden_checks_file, plain

REPOSITORY = Path(__file__).resolve().parents[1]
LOG = "log.txt"  # in the folder in which a command runs
LOG_SHOWN = 2000  # characters of a failed command's log: a traceback's end and the error
FUNCTIONS = tuple(re.findall(r"^def (\w+)", RIGHT, re.MULTILINE))
COURSE = f"""\
title: Six functions

assignments:
  - id: attention
    title: Six functions
    exercises:
      - id: {NAME}
        title: Six functions
        points: {len(CHECKS)}
        hint: Write down the shape after every line.
"""
BANK = f'''{RIGHT}

def make(*, mask="tril"):
    """The exercise's names with this fault."""
    names = dict(globals())
    if mask == "triu":
        names["causal_mask"] = lambda T: torch.ones(T, T, dtype=torch.bool).triu()
    return names


MUTANTS = (("mask_reversed", {{"mask": "triu"}}),)
'''
TEXTS = """\
mask_reversed:
  title: "You hid the past and showed the future."
  explanation: "A query may attend to keys at or before its own position."
  hints: ["What may query 0 see?", "Look at the line with tril or triu.", "Keep the lower \
triangle."]
"""


@dataclass(frozen=True)
class Class:
    """A class that is laid out. command: grades it, run in `folder`. scores: by student, once it
    has ended.
    """

    folder: Path
    command: tuple[str, ...]
    students: tuple[str, ...]

    def scores(self) -> dict[str, float]:
        """Return what the grader's own records say."""
        raise NotImplementedError


class Ours(Class):
    """`course grade` on a course of one exercise, isolation level namespaces."""

    @classmethod
    def laid_out(cls, folder: Path, attempts: Mapping[str, str]) -> Ours:
        """Write the course, release it, and hand in."""
        _, imports, functions = re.split(r"\n\n(?=import math)|\n\n\n(?=def)", RIGHT, maxsplit=2)
        solution = r"\1    ### BEGIN SOLUTION\n\2    ### END SOLUTION\n"
        marked = re.sub(r'(    """.*"""\n)((?:    .+\n)+)', solution, functions)
        files = {
            "course.yaml": COURSE,
            f"solutions/attention/01_{NAME}.py": (
                f'# %% [markdown]\n# # Six functions\n\n# %% tags=["setup"]\n{imports}\n\n\n'
                f'# %% tags=["solution"]\n{marked}'
            ),
            f"grader/checks/test_{NAME}.py": hidden_checks_file(),
            f"grader/misconceptions/{NAME}.py": BANK,
            "grader/misconceptions/texts.yaml": TEXTS,
        }
        _write(folder / "course", files)
        _run(
            sys.executable,
            "-m",
            "manyheads",
            "release",
            "--course",
            str(folder / "course"),
            cwd=folder,
        )
        _write(
            folder,
            {f"submitted/{name}/attention/01_{NAME}.py": text for name, text in attempts.items()},
        )
        grade = (
            sys.executable,
            "-m",
            "manyheads",
            "grade",
            "submitted",
            "--course",
            "course",
            "--seed",
            "0",
        )
        return cls(folder, grade, tuple(attempts))

    def scores(self) -> dict[str, float]:
        """Read the results."""
        results = {
            name: self.folder / "results" / name / "attention.json" for name in self.students
        }
        return {name: json.loads(path.read_text())["score"] for name, path in results.items()}


class Pytest(Class):
    """pytest without plugins: the tests are copied beside each student's file, a process for each
    student.
    """

    GRADE = """\
for student in $(ls submitted); do
    cp tests/test_it.py submitted/$student/
    (cd submitted/$student && "{python}" -m pytest -q -p no:timeout -p no:xdist \
--junitxml=../../results/$student.xml) || true
done
"""

    @classmethod
    def laid_out(cls, folder: Path, attempts: Mapping[str, str]) -> Pytest:
        """Write one test file, a configuration of its own, and the loop."""
        tests = "".join(
            f"\n\ndef test_{name}():\n{indent(text, '    ')}" for name, text in plain().items()
        )
        files = {
            "tests/test_it.py": f"{SETUP}\n\nfrom {NAME} import {', '.join(FUNCTIONS)}\n{tests}",
            "pytest.ini": "[pytest]\n",
            "grade.sh": cls.GRADE.format(python=sys.executable),
        }
        _write(
            folder, files | {f"submitted/{name}/{NAME}.py": text for name, text in attempts.items()}
        )
        return cls(folder, ("sh", "grade.sh"), tuple(attempts))

    def scores(self) -> dict[str, float]:
        """Count the tests that passed."""
        scores = dict[str, float]()
        for name in self.students:
            report = ElementTree.parse(self.folder / "results" / f"{name}.xml")
            scores[name] = sum(len(case) == 0 for case in report.iter("testcase"))
        return scores


class Nbgrader(Class):
    """`nbgrader autograde` as it comes, with the checks as hidden tests in locked cells."""

    @classmethod
    def laid_out(cls, folder: Path, attempts: Mapping[str, str]) -> Nbgrader:
        """Write the source notebook, make the gradebook, and hand in the notebook with its solution
        cell filled.
        """
        stub = "\n".join(f"{function} = None" for function in FUNCTIONS)
        texts = plain()
        first_check = next(iter(texts))
        cells = [
            _cell("attempt", f"### BEGIN SOLUTION\n{stub}\n### END SOLUTION\n", is_solution=True)
        ]
        for name, text in texts.items():
            setup = f"{SETUP}\n" if name == first_check else ""
            cells.append(
                _cell(name, f"### BEGIN HIDDEN TESTS\n{setup}{text}### END HIDDEN TESTS\n")
            )
        _write(folder, {f"source/{NAME}/{NAME}.ipynb": _notebook(cells)})
        _run(sys.executable, "-m", "nbgrader", "generate_assignment", NAME, cwd=folder)
        for student, text in attempts.items():
            filled = [
                _cell("attempt", text, is_solution=True),
                *(_cell(name, "") for name in texts),
            ]
            _write(folder, {f"submitted/{student}/{NAME}/{NAME}.ipynb": _notebook(filled)})
        return cls(folder, (sys.executable, "-m", "nbgrader", "autograde", NAME), tuple(attempts))

    def scores(self) -> dict[str, float]:
        """Read what `nbgrader export` writes."""
        _run(sys.executable, "-m", "nbgrader", "export", cwd=self.folder)
        with (self.folder / "grades.csv").open(newline="") as file:
            return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


GRADERS: dict[str, type[Ours | Pytest | Nbgrader]]
GRADERS = {"course grade": Ours, "plain pytest": Pytest, "nbgrader autograde": Nbgrader}


def _cell(name: str, source: str, *, is_solution: bool = False) -> dict[str, object]:
    marks: dict[str, object] = {
        "grade_id": name,
        "grade": not is_solution,
        "locked": not is_solution,
        "task": False,
    }
    marks |= {"schema_version": 3, "cell_type": "code", "solution": is_solution}
    metadata = {"nbgrader": marks if is_solution else marks | {"points": 1}}
    cell = {"cell_type": "code", "id": name, "source": source, "metadata": metadata}
    return {**cell, "execution_count": None, "outputs": []}


def _notebook(cells: list[dict[str, object]]) -> str:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    )


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def _run(*command: str, cwd: Path) -> None:
    with (cwd / LOG).open("wb") as log:
        run_into_log(command, cwd, log)


def run_into_log(command: Sequence[str], folder: Path, log: BinaryIO) -> None:
    """Run a command as in an activated environment: programs start others by their bare names, as
    nbgrader does alembic.

    Raises SystemExit with the last lines of the log if the command fails.
    """
    search_path = os.pathsep.join(
        [sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PATH": search_path}
    completed = subprocess.run(
        command, cwd=folder, env=environment, stdout=log, stderr=log, check=False
    )
    if completed.returncode:
        last_lines = Path(log.name).read_text(encoding="utf-8", errors="replace")[-LOG_SHOWN:]
        raise SystemExit(f"{' '.join(command)} ended with {completed.returncode}:\n{last_lines}")
