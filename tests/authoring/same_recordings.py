"""Whether a recording agrees with one that another processor made: numbers to rounding, everything
else exactly.

torch adds in another order on another processor, so two machines record floats that differ in their
last bits.
"""

from dataclasses import replace

import torch
from torch import Tensor

from manyheads.box.worker import wire
from manyheads.diagnosis.fingerprint import STORED
from manyheads.diagnosis.recording import Recording

# relative to the largest number of a tensor, or to 1 if all are smaller: float32 has seven digits
TENSORS = 2e-6
# of the larger of two answers of pairs, or of a curve: they are stored with sixteen bits
CLOSE = 1e-3
# Of a mutant that rounds its answers to a decimal, chance decides whether a change of the inputs as
# small as a rounding error shows: one processor records it, and another one leaves it out.
MOST_UNDECIDED = 0.001  # of all answers


def differences(there: Recording, made: Recording) -> list[str]:
    """In which of its parts a recording differs from one that was made now."""
    both = (there, made)
    agree = {
        "words and checks": _plain(there) == _plain(made),
        "calls": all(map(_same_numbers, *(_tensors((each.calls, each.expected)) for each in both))),
        "conditions": all(map(_same_numbers, *(_tensors(_asked(each)) for each in both))),
        "answers": _same_answers(there, made),
        "pairs": _same_pairs(there, made),
        "curves": _same_curves(there, made),
    }
    return [part for part, agrees in agree.items() if not agrees]


def _plain(one: Recording) -> tuple[object, ...]:
    numbers = dict.fromkeys("calls expected replies mutants pairs curves drawn".split(), ())
    conditions = [vars(replace(each, calls=(), expected=())) for each in one.conditions]
    without = replace(one, **numbers, conditions=(), words=dict(one.words))  # type: ignore[arg-type]
    structure = wire.to_body((one.calls, one.expected, _asked(one)), [])
    return vars(without), conditions, [mutant.id for mutant in one.mutants], structure


def _asked(one: Recording) -> list[tuple[object, object]]:
    """Return what the conditions ask, and what the reference returns."""
    return [(each.calls, each.expected) for each in one.conditions]


def _tensors(value: object) -> list[Tensor]:
    wire.to_body(value, found := list[Tensor]())
    return found


def _same_numbers(a: Tensor, b: Tensor) -> bool:
    if not a.is_floating_point():
        return torch.equal(a, b)
    finite = [each.nan_to_num(0, 0, 0).abs().max() for each in (a, b) if each.numel()]
    return torch.allclose(
        a.double(), b.double(), 0, TENSORS * max(1.0, *map(float, finite)), equal_nan=True
    )


def _undecided(there: Recording, made: Recording) -> int:
    mutants = zip(there.mutants, made.mutants, strict=True)
    return sum(
        (a is None) != (b is None)
        for m, n in mutants
        for a, b in zip(m.answers, n.answers, strict=True)
    )


def _same_answers(there: Recording, made: Recording) -> bool:
    calls, mutants = range(len(there.calls)), zip(there.mutants, made.mutants, strict=True)
    answers = [(there.answer(m, i), made.answer(n, i)) for m, n in mutants for i in calls]
    answers += [(there.right(i), made.right(i)) for i in calls]
    same = all(
        a.is_same(b, tolerance=STORED) for a, b in answers if a is not None and b is not None
    )
    return same and _undecided(there, made) <= MOST_UNDECIDED * len(answers)


def _same_pairs(there: Recording, made: Recording) -> bool:
    # where rounding decides an answer, it may decide which pairs are asked
    if _undecided(there, made):
        return True
    before, after = there.pairs, made.pairs
    if not all(
        torch.equal(getattr(before, name), getattr(after, name))
        for name in ("first", "second", "probe")
    ):
        return False
    mine, others = before.answers, after.answers
    size = torch.maximum(mine.numbers.abs(), others.numbers.abs()).amax(1)
    differ = (mine.structure != others.structure) | (
        (mine.numbers - others.numbers).abs().amax(1) > CLOSE * size
    )
    return int(differ.sum()) <= MOST_UNDECIDED * len(differ)


def _same_curves(there: Recording, made: Recording) -> bool:
    heads = [
        [(each.id, each.calls, each.forms, each.speaks) for each in one.curves]
        for one in (there, made)
    ]
    answers = [
        [answer for curve in one.curves for answer in curve.answers] for one in (there, made)
    ]
    return heads[0] == heads[1] and all(
        torch.equal(a.isnan(), b.isnan())
        and not bool(((a - b).abs() > CLOSE * a.abs().amax(1, keepdim=True)).any())
        for a, b in zip(*answers, strict=True)
    )
