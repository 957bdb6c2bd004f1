"""The part of a result that the class table needs, so that not all results of a large class are kept in memory."""

from __future__ import annotations

from dataclasses import dataclass

from ..result import ExerciseResult, Outcome, Result
from .words import score_note


@dataclass(frozen=True)
class Cell:
    """One attempt's points, and the outcome to note beside them."""

    score: float
    max_score: float
    note: Outcome | None


@dataclass(frozen=True)
class Row:
    """One submission."""

    student: str
    score: float
    max_score: float
    cells: dict[str, Cell]  # by exercise
    first: tuple[str, str] | None  # the first misconception: its exercise and its id
    misconceptions: frozenset[str]

    @property
    def stopped(self) -> bool:
        """Whether an attempt crashed or ran out of time."""
        return any(cell.note in ("crashed", "timeout") for cell in self.cells.values())


def row_of(result: Result) -> Row:
    """The row of a submission."""
    named = [(exercise.id, diagnosed.id) for exercise in result.exercises for diagnosed in exercise.diagnosis]
    return Row(
        student=result.student,
        score=result.score,
        max_score=result.max_score,
        cells={exercise.id: _cell(exercise) for exercise in result.exercises},
        first=named[0] if named else None,
        misconceptions=frozenset(id_ for _, id_ in named),
    )


def _cell(exercise: ExerciseResult) -> Cell:
    return Cell(exercise.score, exercise.max_score, score_note(exercise))
