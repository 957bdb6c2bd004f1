"""What the bench asks of a grader."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

Scores = Mapping[str, float | None]


class Grader(Protocol):
    """One grader and the class that it grades, all of it below `folder`."""

    name: str
    programs: Path  # the folder of its programs, first in PATH as in an activated environment

    def version(self) -> str:
        """What was measured: name and version."""
        ...

    def prepare(self, folder: Path) -> None:
        """Lay out a course with no submission yet."""
        ...

    def hand_in(self, folder: Path, student: str, files: Mapping[str, str]) -> None:
        """Hand in `attempt.py` in the form that the grader wants, with the other files beside it."""
        ...

    def command(self, folder: Path) -> list[str]:
        """The command that grades the class, run in `folder`."""
        ...

    def scores(self, folder: Path, students: Iterable[str]) -> Scores:
        """As the grader's own records have them; None where there is none, or one that cannot be read."""
        ...


def each(students: Iterable[str], score: Callable[[str], float | None]) -> Scores:
    """Score by score: a record that an attack has left half written costs that student only."""
    found: dict[str, float | None] = {}
    for student in students:
        try:
            found[student] = score(student)
        except (ValueError, SyntaxError):
            found[student] = None
    return found


def notebook(*cells: Mapping[str, object]) -> str:
    """A notebook of code cells, as text."""
    full = [
        {"cell_type": "code", "id": f"cell{i}", "metadata": {}, "execution_count": None, "outputs": [], **cell}
        for i, cell in enumerate(cells)
    ]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"cells": full, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
