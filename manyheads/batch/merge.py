"""Merge a result of some exercises into an earlier result."""

from __future__ import annotations

from collections.abc import Collection

from ..course import Assignment
from ..result import Result


def merged(
    result: Result, before: Result | None, assignment: Assignment, kept: Collection[str] | None = None
) -> Result:
    """The result, with missing exercises taken from an earlier result, in the course's order.

    Nothing is taken from a result with another device or isolation level, because a result states one of each.
    kept: only these are taken; None: all that the course has.
    """
    if before is None or (before.device, before.isolation) != (result.device, result.isolation):
        return result
    earlier = [e for e in before.exercises if kept is None or e.id in kept]
    found = {e.id: e for e in (*earlier, *result.exercises)}
    exercises = tuple(found[e.id] for e in assignment.exercises if e.id in found)
    scores = {"score": sum(e.score for e in exercises), "max_score": sum(e.max_score for e in exercises)}
    return result.model_copy(update={"exercises": exercises, **scores})
