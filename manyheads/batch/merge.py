"""Merge a result of some exercises into an earlier result."""

from __future__ import annotations

from collections.abc import Collection

from ..course import Assignment
from ..result import Result, with_total


def merged(
    result: Result, before: Result | None, assignment: Assignment, kept: Collection[str] | None = None
) -> Result:
    """The result, with missing exercises taken from an earlier result, in the course's order.

    Nothing is taken from a result with another device, isolation level or seed, because a result states one of each.
    kept: only these are taken; None: all that the course has.
    """
    if before is None or _stated(before) != _stated(result):
        return result
    earlier = [e for e in before.exercises if kept is None or e.id in kept]
    found = {e.id: e for e in (*earlier, *result.exercises)}
    return with_total(result, (found[e.id] for e in assignment.exercises if e.id in found))


def _stated(result: Result) -> tuple[str, str, int]:
    return result.device, result.isolation, result.seed
