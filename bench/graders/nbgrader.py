"""nbgrader as it comes: `nbgrader autograde`, with the checks as hidden tests in locked cells."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..assignment import Assignment
from ..places import environment
from ..venvs import call, python_of, version_of
from .base import Scores, notebook


def _cell(name: str, source: str, *, solution: bool) -> dict[str, object]:
    marks = {"grade_id": name, "grade": not solution, "locked": not solution, "solution": solution, "task": False}
    points = {} if solution else {"points": 1}
    return {"source": source, "metadata": {"nbgrader": {"schema_version": 3, "cell_type": "code", **marks, **points}}}


def _hidden(name: str, source: str) -> dict[str, object]:
    return _cell(name, f"### BEGIN HIDDEN TESTS\n{source}### END HIDDEN TESTS\n", solution=False)


class Nbgrader:
    """nbgrader with its default configuration."""

    name = "nbgrader autograde"

    def __init__(self, cache: Path, assignment: Assignment) -> None:
        """Build its environment under `cache`."""
        self._python = python_of(cache, "nbgrader", "nbgrader==0.9.6", "numpy")
        self._assignment = assignment
        self.programs = self._python.parent

    def version(self) -> str:
        """Name and version."""
        return f"nbgrader {version_of(self._python, 'nbgrader')}"

    def prepare(self, folder: Path) -> None:
        """A source notebook, and the gradebook that `generate_assignment` makes."""
        name = self._assignment.name
        source = folder / "source" / name
        source.mkdir(parents=True)
        (first, text), *rest = self._assignment.checks.items()
        stub = "\n".join(f"{function} = None" for function in self._assignment.functions)
        cells = [
            _cell("attempt", f"### BEGIN SOLUTION\n{stub}\n### END SOLUTION\n", solution=True),
            _hidden(first, f"{self._assignment.setup}\n{text}"),
            *(_hidden(check, text) for check, text in rest),
        ]
        (source / f"{name}.ipynb").write_text(notebook(*cells))
        self._call("generate_assignment", name, folder=folder)

    def hand_in(self, folder: Path, student: str, files: Mapping[str, str]) -> None:
        """The released notebook with its solution cell filled."""
        name = self._assignment.name
        own = folder / "submitted" / student / name
        own.mkdir(parents=True)
        cells = [_cell("attempt", files["attempt.py"], solution=True)]
        cells += [_cell(check, "", solution=False) for check in self._assignment.checks]
        (own / f"{name}.ipynb").write_text(notebook(*cells))
        for beside, text in files.items():
            if beside != "attempt.py":
                (own / beside).write_text(text)

    def command(self, folder: Path) -> list[str]:
        """One command for the class."""
        return [str(self._python), "-m", "nbgrader", "autograde", self._assignment.name]

    def scores(self, folder: Path, students: Iterable[str]) -> Scores:
        """From the gradebook, by `nbgrader export`."""
        self._call("export", folder=folder)
        with (folder / "grades.csv").open(newline="") as file:
            found = {row["student_id"]: row["score"] for row in csv.DictReader(file)}
        return {student: float(found[student]) if found.get(student) else None for student in students}

    def _call(self, *words: str, folder: Path) -> None:
        call(self._python, "nbgrader", *words, folder=folder, env=environment(folder, self.programs))
