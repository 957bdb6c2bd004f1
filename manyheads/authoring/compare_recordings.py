"""Compare a recording on disk with a new one: numbers to rounding, everything else exactly."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..box.worker import wire
from ..diagnosis.comparison import Expected
from ..diagnosis.fingerprint import STORED
from ..diagnosis.pair_answers import Pairs
from ..diagnosis.recording import Content, Fingerprints
from ..diagnosis.recording_file import UNREADABLE, loaded

# torch adds in another order on another processor, so two machines record floats that differ in their last bits. Such
# recordings are equivalent, although a comparison of bytes would call one of them stale.

TENSORS = 2e-6  # relative to the largest number of a tensor, or to 1 if all are smaller: float32 has seven digits


def same_numbers(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors have the same numbers: floats to rounding, others exactly."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    a, b = a.double(), b.double()
    finite = a.isfinite() & b.isfinite()
    if not bool((finite | (a == b) | (a.isnan() & b.isnan())).all()):
        return False
    mine, other = a[finite], b[finite]
    largest = max(1.0, float(mine.abs().max())) if mine.numel() else 1.0
    return bool(((mine - other).abs() <= TENSORS * largest).all())


# Compare a recording on disk with a new one, as a student's machine reads it: numbers to rounding, all else exactly.
#
# Of a mutant that rounds its answers to a decimal, chance decides whether a change of the inputs as small as a
# rounding error shows in an answer of float32 (`chance.is_of_rounding`): one processor records it, and another one
# leaves it out.

MOST_UNDECIDED = 0.001  # of all answers, those that only one of the two files has, or that pairs give otherwise
CLOSE = 1e-3  # of the larger of two answers of pairs: they are stored with sixteen bits


def same_fingerprints(there: bytes, made: bytes) -> bool:
    """Return whether two recordings are equivalent. False where `there` cannot be read."""
    if there == made:
        return True
    try:
        before = loaded(there)
    except UNREADABLE:
        return False
    after = loaded(made)
    return (
        is_same_but_for_answers(before, after)
        and _same_answers(before.content, after.content)
        # Where rounding decides an answer, it may decide a class of mutants, and with it which pairs are asked.
        and (_undecided(before.content, after.content) > 0 or _same_classes(before, after))
    )


def is_same_but_for_answers(before: Fingerprints, after: Fingerprints) -> bool:
    """Return whether all but the mutants' answers and the pairs is the same."""
    return (
        before.key == after.key
        and _without_answers(before.content) == _without_answers(after.content)
        and len(before.calls) == len(after.calls)
        and all(map(_same_parts, before.calls, after.calls))
        and len(before.expected) == len(after.expected)
        and all(map(_same_outputs, before.expected, after.expected))
    )


def _without_answers(content: Content) -> Content:
    return replace(content, replies=(), mutants=(), classes=(), probes=(), words=dict(content.words))


def _same_parts(before: object, after: object) -> bool:
    mine, others = list[Tensor](), list[Tensor]()
    if wire.to_body(before, mine) != wire.to_body(after, others):
        return False
    return all(_same_tensor(a, b) for a, b in zip(mine, others, strict=True))


def _same_outputs(before: Expected, after: Expected) -> bool:
    return len(before) == len(after) and all(
        a is b or (a is not None and b is not None and _same_tensor(a, b)) for a, b in zip(before, after, strict=True)
    )


def _same_tensor(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors are the same in the bits that a recording keeps."""
    a, b = (side.float() if side.is_floating_point() else side for side in (a, b))
    return same_numbers(a, b)


def _same_answers(before: Content, after: Content) -> bool:
    """Return whether the reference and all mutants answer alike, however answers that are the same to rounding are stored."""
    if len(before.replies) != len(after.replies) or [m.id for m in before.mutants] != [m.id for m in after.mutants]:
        return False
    right = {(i, 0, 0) for i in range(len(before.replies))}
    places = [
        (i, *both)
        for old, new in zip(before.mutants, after.mutants, strict=True)
        for i, both in enumerate(zip(old.answers, new.answers, strict=True))
    ]
    known = right | {(i, a, b) for i, a, b in places if a is not None and b is not None}
    return _undecided(before, after) <= MOST_UNDECIDED * len(places) and all(
        before.replies[i][a].is_same(after.replies[i][b], tolerance=STORED) for i, a, b in known
    )


def _undecided(before: Content, after: Content) -> int:
    """Return how many answers one of the two has, and the other has not."""
    return sum(
        (a is None) != (b is None)
        for old, new in zip(before.mutants, after.mutants, strict=True)
        for a, b in zip(old.answers, new.answers, strict=True)
    )


def _same_classes(before: Fingerprints, after: Fingerprints) -> bool:
    return (before.content.classes, before.content.probes) == (after.content.classes, after.content.probes) and (
        _same_pairs(before.pairs, after.pairs)
    )


def _same_pairs(before: Pairs, after: Pairs) -> bool:
    """Return whether the same pairs answer the same calls alike, but for a few that rounding decides."""
    for name in ("first", "second", "probe"):
        if not torch.equal(getattr(before, name), getattr(after, name)):
            return False
    mine, others = before.answers, after.answers
    apart = (mine.numbers - others.numbers).abs().amax(1)
    size = torch.maximum(mine.numbers.abs(), others.numbers.abs()).amax(1)
    differ = (mine.structure != others.structure) | (apart > CLOSE * size)
    return int(differ.sum()) <= MOST_UNDECIDED * len(differ)
