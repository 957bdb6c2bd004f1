"""nbgrader as it comes: `nbgrader autograde`, with the checks as hidden tests in locked cells."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from ..exercise import CHECKS, SETUP
from ..run import environment
from ..venvs import call, python_of, version_of
from .base import notebook

ASSIGNMENT = "running_mean"
STUB = "import torch\n\n\ndef running_mean(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n"


def _cell(name: str, source: str, *, solution: bool) -> dict[str, object]:
    marks = {"grade_id": name, "grade": not solution, "locked": not solution, "solution": solution, "task": False}
    points = {} if solution else {"points": 1}
    return {"source": source, "metadata": {"nbgrader": {"schema_version": 3, "cell_type": "code", **marks, **points}}}


def _hidden(name: str, source: str) -> dict[str, object]:
    return _cell(name, f"### BEGIN HIDDEN TESTS\n{source}### END HIDDEN TESTS\n", solution=False)


class Nbgrader:
    """nbgrader with its default configuration."""

    name = "nbgrader autograde"

    def __init__(self, cache: Path) -> None:
        """Build its environment under `cache`."""
        self._python = python_of(cache, "nbgrader", "nbgrader==0.9.6", "numpy")
        self.programs = self._python.parent

    def version(self) -> str:
        """Name and version."""
        return f"nbgrader {version_of(self._python, 'nbgrader')}"

    def prepare(self, folder: Path) -> None:
        """A source notebook, and the gradebook that `generate_assignment` makes."""
        source = folder / "source" / ASSIGNMENT
        source.mkdir(parents=True)
        setup, *rest = CHECKS.items()
        cells = [
            _cell("attempt", STUB, solution=True),
            _hidden(setup[0], f"{SETUP}\n{setup[1]}"),
            *(_hidden(name, text) for name, text in rest),
        ]
        (source / f"{ASSIGNMENT}.ipynb").write_text(notebook(*cells))
        call(
            self._python,
            "nbgrader",
            "generate_assignment",
            ASSIGNMENT,
            folder=folder,
            env=environment(folder, self.programs),
        )

    def hand_in(self, folder: Path, student: str, files: Mapping[str, str]) -> None:
        """The released notebook with its solution cell filled."""
        own = folder / "submitted" / student / ASSIGNMENT
        own.mkdir(parents=True)
        cells = [_cell("attempt", files["attempt.py"], solution=True)]
        cells += [_cell(name, "", solution=False) for name in CHECKS]
        (own / f"{ASSIGNMENT}.ipynb").write_text(notebook(*cells))
        for name, text in files.items():
            if name != "attempt.py":
                (own / name).write_text(text)

    def command(self, folder: Path) -> list[str]:
        """One command for the class."""
        return [str(self._python), "-m", "nbgrader", "autograde", ASSIGNMENT]

    def score(self, folder: Path, student: str) -> float | None:
        """From the gradebook, by `nbgrader export`."""
        call(self._python, "nbgrader", "export", folder=folder, env=environment(folder, self.programs))
        with (folder / "grades.csv").open(newline="") as file:
            scores = [row["score"] for row in csv.DictReader(file) if row["student_id"] == student]
        return float(scores[0]) if scores and scores[0] else None
