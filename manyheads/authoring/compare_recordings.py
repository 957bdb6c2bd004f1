"""Compare a recording on disk with a new one: numbers to rounding, everything else exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..box.worker import wire
from ..diagnosis.family import Curve
from ..diagnosis.fingerprint import STORED
from ..diagnosis.pair_answers import Pairs
from ..diagnosis.recording import Recording
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


# Of a mutant that rounds its answers to a decimal, chance decides whether a change of the inputs as small as a rounding error
# shows in an answer of float32 (`record_calls.is_fixed`): one processor records it, and another one leaves it out.
MOST_UNDECIDED = 0.001  # of all answers, those that only one of the two files has, or that pairs give otherwise
CLOSE = 1e-3  # of the larger of two answers of pairs, or of a curve: they are stored with sixteen bits


def same_fingerprints(there: bytes, made: bytes) -> bool:
    """Return whether two recordings are equivalent. False where one cannot be read."""
    if there == made:
        return True
    try:
        before, after = loaded(there), loaded(made)
    except UNREADABLE:
        return False
    return (
        _without_answers(before) == _without_answers(after)
        and _same_parts((before.calls, before.expected), (after.calls, after.expected))
        and _same_answers(before, after)
        and len(before.curves) == len(after.curves)
        and all(map(_same_curve, before.curves, after.curves))
    )


def _without_answers(one: Recording) -> Recording:
    numbers: dict[str, Any] = dict.fromkeys("calls expected replies mutants pairs curves drawn".split(), ())
    return replace(one, **numbers, words=dict(one.words))


def _same_parts(before: object, after: object) -> bool:
    """Return whether two values are the same in the bits that a recording keeps."""
    mine, others = list[Tensor](), list[Tensor]()
    if wire.to_body(before, mine) != wire.to_body(after, others):
        return False
    narrow = ([t.float() if t.is_floating_point() else t for t in side] for side in (mine, others))
    return all(same_numbers(a, b) for a, b in zip(*narrow, strict=True))


def _same_answers(old: Recording, new: Recording) -> bool:
    """Return whether the reference, all mutants and pairs answer alike, however answers that are the same to rounding are stored."""
    if len(old.replies) != len(new.replies) or [m.id for m in old.mutants] != [m.id for m in new.mutants]:
        return False
    places = [
        (i, *both)
        for mine, other in zip(old.mutants, new.mutants, strict=True)
        for i, both in enumerate(zip(mine.answers, other.answers, strict=True))
    ]
    undecided = sum((a is None) != (b is None) for _, a, b in places)
    known = {(i, a, b) for i, a, b in places if a is not None and b is not None} | {
        (i, 0, 0) for i in range(len(old.replies))
    }
    if undecided > MOST_UNDECIDED * len(places):
        return False
    if not all(old.replies[i][a].is_same(new.replies[i][b], tolerance=STORED) for i, a, b in known):
        return False
    # Where rounding decides an answer, it may decide a class of mutants, and with it which pairs are asked.
    return undecided > 0 or _same_pairs(old.pairs, new.pairs)


def _same_pairs(before: Pairs, after: Pairs) -> bool:
    """Return whether the same pairs answer the same calls alike, but for a few that rounding decides."""
    if not all(torch.equal(getattr(before, name), getattr(after, name)) for name in ("first", "second", "probe")):
        return False
    mine, others = before.answers, after.answers
    apart = (mine.numbers - others.numbers).abs().amax(1)
    size = torch.maximum(mine.numbers.abs(), others.numbers.abs()).amax(1)
    differ = (mine.structure != others.structure) | (apart > CLOSE * size)
    return int(differ.sum()) <= MOST_UNDECIDED * len(differ)


def _same_curve(before: Curve, after: Curve) -> bool:
    heads = [(each.id, each.calls, each.forms, each.speaks) for each in (before, after)]
    return heads[0] == heads[1] and all(
        torch.equal(a.isnan(), b.isnan()) and not bool(((a - b).abs() > CLOSE * a.abs().amax(1, keepdim=True)).any())
        for a, b in zip(before.answers, after.answers, strict=True)
    )
