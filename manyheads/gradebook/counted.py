"""What counts, cell by cell. nbgrader knows points by cell, a penalty by notebook, and no excuse."""

from __future__ import annotations

from collections.abc import Sequence

from ..result import ExerciseResult, Result, Rule
from .cells import KnownCell

_HAIR = 1e-6  # what sums of points differ by


def cell_scores(exercise: ExerciseResult, result: Result, cells: Sequence[KnownCell]) -> list[float]:
    """The points of each cell, before a late penalty and extra credit.

    Where the exercise's score is not its checks' (it was set by hand), cells share it by their points. An exercise
    that is excused has the share of its points that the others have: then nbgrader's total is the same share of all
    points as without it, if there is one.
    """
    before = _before(exercise)
    own = [cell.score(exercise) for cell in cells]
    if exercise.excused:
        share = result.score / result.max_score if result.score is not None and result.max_score else None
    elif before is not None and abs(before - sum(check.score for check in exercise.checks)) > _HAIR:
        share = before / exercise.max_score if exercise.max_score else None
    else:
        share = None
    return own if share is None else [cell.points * share for cell in cells]


def extra_credit(exercise: ExerciseResult) -> float:
    """The extra credit that is decided."""
    return sum(each.after - each.before for each in exercise.adjustments if each.rule == "extra credit")


def late_share(exercise: ExerciseResult) -> float:
    """The share of the points that being late costs."""
    late = next((each for each in exercise.adjustments if each.rule == "late"), None)
    return 0.0 if late is None or not late.before or exercise.excused else 1 - late.after / late.before


def _before(exercise: ExerciseResult) -> float | None:
    """The score before a late penalty, or extra credit; None where it is not graded."""
    last: tuple[Rule, ...] = ("late", "extra credit")
    return next((each.before for each in exercise.adjustments if each.rule in last), exercise.score)
