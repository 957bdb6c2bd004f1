"""Which autograded cell holds which checks: read from the released notebook, which says so in its metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ..course import Assignment, Course, CourseError, Exercise
from ..result import ExerciseResult

METADATA = "manyheads"  # the key under which a released cell lists its checks


@dataclass(frozen=True)
class GradedCell:
    """One read-only autograded cell: its hidden checks share its points."""

    grade_id: str
    points: float
    checks: tuple[str, ...]
    source: str

    def score(self, result: ExerciseResult) -> float:
        """What its checks earned."""
        return sum(check.score for check in result.checks if check.id in self.checks)


@dataclass(frozen=True)
class NotebookCells:
    """The cells of one exercise's notebook that nbgrader keeps in its database."""

    notebook: str
    graded: tuple[GradedCell, ...]
    solutions: tuple[str, ...]  # grade ids; comments stand on them
    locked: tuple[tuple[str, str], ...]  # (grade id, source) of read-only cells without points


def notebook_cells(course: Course, assignment: Assignment, exercise: Exercise) -> NotebookCells:
    """The cells of a released notebook. Raises CourseError where it is missing."""
    path = course.released(assignment, exercise, ".ipynb")
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError):
        raise CourseError(f"{path} is missing. Next: course release") from None
    known = [(cell["metadata"]["nbgrader"], cell) for cell in cells if "nbgrader" in cell["metadata"]]
    return NotebookCells(
        path.stem,
        tuple(_graded(about, cell) for about, cell in known if about["grade"]),
        tuple(about["grade_id"] for about, _ in known if about["solution"]),
        tuple((about["grade_id"], _source(cell)) for about, cell in known if not about["grade"] and about["locked"]),
    )


def _graded(about: dict[str, object], cell: dict[str, Any]) -> GradedCell:
    checks = tuple(cell["metadata"][METADATA]["checks"])
    return GradedCell(str(about["grade_id"]), float(str(about["points"])), checks, _source(cell))


def _source(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return "".join(source) if isinstance(source, list) else str(source)
