"""Causality and independence: not the numbers of the answers, but which of them an edit of the input reaches.

The calls of such a check differ in an edit. Where the reference's answers stay as they are, an attempt's must stay; where
they move, along each axis, an attempt's must move; where they are 0, an attempt's must be. So who only scales wrongly is
not told that the future is seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from torch import Tensor

from ..box.worker.messages import Call

_STAYS, _SAME = 1e-5, 1e-6  # of the largest value: in an attempt's answers, in the reference's
_MOVES = 1e-9


def broken_relation(expected: Sequence[Tensor | None], found: Sequence[Tensor | None]) -> str | None:
    """What an edit does that it should not, or does not do; "" where all is well.

    None where nothing can be said this way: no two answers have anything in common, or one is not what is asked at all.
    """
    pairs = list(_pairs(expected, found))
    if not pairs:
        return None
    for want, have in zip(expected, found, strict=True):
        missed, zeros = _zeros_missed(want, have)
        if missed:
            return f"{missed} of {zeros} numbers that should be 0 are not"
    for same, before, after in pairs:
        apart, largest = (before - after).abs(), float(before.abs().max())
        moved = int(((apart > _STAYS * largest) & same).sum())
        if moved:
            return f"the input was edited, and {moved} of {int(same.sum())} numbers that should stay have moved"
        for axis in range(same.dim()):
            others = [d for d in range(same.dim()) if d != axis]
            asked = (~same).sum(others) > 0 if others else ~same
            moves = (apart > _MOVES * largest).sum(others) > 0 if others else apart > _MOVES * largest
            if bool((asked & ~moves).any()):
                return "the input was edited, and numbers that should move stay as they were"
    return ""


def setting_of(call: Call) -> str:
    """What is called, and with which attributes set: only answers of one setting are held against each other."""
    if isinstance(call.subject, str):
        return call.subject
    return f"{call.subject.target} {sorted(call.subject.attributes.items())}"


def _zeros_missed(expected: Tensor | None, found: Tensor | None) -> tuple[int, int]:
    """How many numbers are not 0 where the reference's are, and of how many."""
    if expected is None or found is None:
        return 0, 0
    zero = expected == 0
    return int((zero & (found.abs() > _STAYS * found.abs().max())).sum()), int(zero.sum())


def _pairs(
    expected: Sequence[Tensor | None], found: Sequence[Tensor | None]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """(where the reference's two answers are the same, an attempt's two), for answers that have something in common."""
    answers = [
        (want.double(), have.double())
        for want, have in zip(expected, found, strict=True)
        if want is not None and have is not None and want.shape == have.shape and _is_finite(want) and _is_finite(have)
    ]
    if len(answers) < len(expected):
        return
    for (first, before), (second, after) in combinations(answers, 2):
        if first.shape == second.shape and first.dim():
            same = (first - second).abs() <= _SAME * first.abs().max()
            if bool(same.any()):
                yield same, before, after


def _is_finite(answer: Tensor) -> bool:
    """Whether its numbers can be held against a part of the largest. A mask's -inf cannot, and may be written finitely."""
    return bool(answer.isfinite().all())
