"""Which autograded cell holds which checks: read from the released notebook, which says so in its metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..course import CourseError, Exercise
from ..result import ExerciseResult
from ..submission.notebook import METADATA_KEY


@dataclass(frozen=True)
class KnownCell:
    """A released cell that nbgrader keeps in its database: the student's own, a visible check, or an autograded one."""

    grade_id: str
    source: str
    metadata: Mapping[str, Any]

    @property
    def is_solution(self) -> bool:
        """Whether the student writes here."""
        return bool(self.metadata["nbgrader"]["solution"])

    @property
    def is_graded(self) -> bool:
        """Whether it has points, none of them perhaps."""
        return bool(self.metadata["nbgrader"]["grade"])

    @property
    def points(self) -> float:
        """What it is worth."""
        return float(self.metadata["nbgrader"].get("points", 0))

    @property
    def checksum(self) -> str:
        """nbgrader's own: by it nbgrader knows an edited cell."""
        return str(self.metadata["nbgrader"]["checksum"])

    @property
    def checks(self) -> tuple[str, ...]:
        """The ids of the hidden checks that share its points."""
        return tuple(self.metadata.get(METADATA_KEY, {}).get("checks", ()))

    def score(self, result: ExerciseResult) -> float:
        """What its checks earned; never more than its points, which floating-point sums may pass by a hair."""
        return min(self.points, sum(check.score for check in result.checks if check.id in self.checks))


@dataclass(frozen=True)
class NotebookCells:
    """The cells of one exercise's notebook that nbgrader keeps, in their order. texts: the lesson's Markdown cells."""

    notebook: str
    kernelspec: str
    cells: tuple[KnownCell, ...]
    texts: frozenset[str] = frozenset()

    @property
    def graded(self) -> tuple[KnownCell, ...]:
        """Those with points."""
        return tuple(cell for cell in self.cells if cell.is_graded)

    @property
    def solutions(self) -> tuple[KnownCell, ...]:
        """Those that the student writes in. Comments stand on the first."""
        return tuple(cell for cell in self.cells if cell.is_solution)


def notebook_cells(exercise: Exercise) -> NotebookCells:
    """The cells of a released notebook. Raises CourseError where it is missing."""
    path = exercise.notebook
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        known = tuple(
            KnownCell(cell["metadata"]["nbgrader"]["grade_id"], _source(cell), cell["metadata"])
            for cell in notebook["cells"]
            if "nbgrader" in cell["metadata"]
        )
        texts = frozenset(_source(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
        return NotebookCells(path.stem, json.dumps(notebook["metadata"]["kernelspec"]), known, texts)
    except (OSError, ValueError, LookupError):
        raise CourseError(f"{path} is missing, or not as it was released. Next: course release") from None


def _source(cell: Mapping[str, Any]) -> str:
    source = cell["source"]
    return "".join(source) if isinstance(source, list) else str(source)
