"""Compare a recording with one that another processor made.

Floats may differ by rounding, because torch adds in another order on another processor; everything
else must be equal.
"""

from dataclasses import replace

import torch
from torch import Tensor

from manyheads.box.worker import wire
from manyheads.diagnosis.fault_dictionary import FaultDictionary
from manyheads.diagnosis.fingerprint import STORED

# relative to the largest number of a tensor, or to 1 if all are smaller: float32 has seven digits
FLOAT_TOLERANCE = 2e-6
# relative to the larger answer: answers of pairs and sweeps are stored with sixteen bits
SIXTEEN_BIT_TOLERANCE = 1e-3
# If a mutant rounds its answers to a decimal, a change of the inputs as small as a rounding error
# may or may not show: one processor records the answer, and another one leaves it out.
MAX_UNDECIDED = 0.001  # share of all answers


def differences(stored: FaultDictionary, fresh: FaultDictionary) -> list[str]:
    """Return the names of the parts in which a stored recording differs from a fresh one."""
    both = (stored, fresh)
    agree = {
        "words and checks": _plain(stored) == _plain(fresh),
        "calls": all(
            map(
                _same_numbers,
                *(_tensors((dictionary.calls, dictionary.expected)) for dictionary in both),
            )
        ),
        "conditions": all(
            map(_same_numbers, *(_tensors(_condition_calls(dictionary)) for dictionary in both))
        ),
        "weights": _same_weights(stored, fresh),
        "answers": _same_answers(stored, fresh),
        "pairs": _same_pairs(stored, fresh),
        "curves": _same_sweeps(stored, fresh),
    }
    return [name for name, agrees in agree.items() if not agrees]


def _plain(dictionary: FaultDictionary) -> tuple[object, ...]:
    """Return everything in a recording except numbers."""
    numbers = dict.fromkeys("calls expected replies mutants pairs sweeps drawn".split(), ())
    conditions = [
        vars(replace(condition, calls=(), expected=())) for condition in dictionary.conditions
    ]
    words = dict(dictionary.words)
    without = replace(  # type: ignore[arg-type]
        dictionary, **numbers, conditions=(), words=words, weights={}
    )
    structure = wire.to_body(
        (dictionary.calls, dictionary.expected, _condition_calls(dictionary)), []
    )
    return vars(without), conditions, [mutant.id for mutant in dictionary.mutants], structure


def _same_weights(stored: FaultDictionary, fresh: FaultDictionary) -> bool:
    if stored.weights.keys() != fresh.weights.keys():
        return False
    for call, tables in stored.weights.items():
        for a, b in zip(tables, fresh.weights[call], strict=True):
            if (a is None) != (b is None):
                return False
            if (
                a is not None
                and b is not None
                and not torch.allclose(a, b, 0, SIXTEEN_BIT_TOLERANCE)
            ):
                return False
    return True


def _condition_calls(dictionary: FaultDictionary) -> list[tuple[object, object]]:
    """Return the calls of all conditions, and the answers of the reference."""
    return [(condition.calls, condition.expected) for condition in dictionary.conditions]


def _tensors(value: object) -> list[Tensor]:
    """Return all tensors inside a value."""
    tensors = list[Tensor]()
    wire.to_body(value, tensors)
    return tensors


def _same_numbers(a: Tensor, b: Tensor) -> bool:
    if not a.is_floating_point():
        return torch.equal(a, b)
    finite = [tensor.nan_to_num(0, 0, 0).abs().max() for tensor in (a, b) if tensor.numel()]
    return torch.allclose(
        a.double(), b.double(), 0, FLOAT_TOLERANCE * max(1.0, *map(float, finite)), equal_nan=True
    )


def _count_undecided(stored: FaultDictionary, fresh: FaultDictionary) -> int:
    """Return the number of answers that only one of the two recordings has."""
    mutants = zip(stored.mutants, fresh.mutants, strict=True)
    return sum(
        (a is None) != (b is None)
        for m, n in mutants
        for a, b in zip(m.answers, n.answers, strict=True)
    )


def _same_answers(stored: FaultDictionary, fresh: FaultDictionary) -> bool:
    calls, mutants = range(len(stored.calls)), zip(stored.mutants, fresh.mutants, strict=True)
    answers = [(stored.answer(m, i), fresh.answer(n, i)) for m, n in mutants for i in calls]
    answers += [(stored.expected_reply(i), fresh.expected_reply(i)) for i in calls]
    same = all(
        a.is_same(b, tolerance=STORED) for a, b in answers if a is not None and b is not None
    )
    return same and _count_undecided(stored, fresh) <= MAX_UNDECIDED * len(answers)


def _same_pairs(stored: FaultDictionary, fresh: FaultDictionary) -> bool:
    # if rounding decides an answer, it may also decide which pairs are recorded
    if _count_undecided(stored, fresh):
        return True
    for name in ("first", "second", "probe"):
        if not torch.equal(getattr(stored.pairs, name), getattr(fresh.pairs, name)):
            return False
    a, b = stored.pairs.answers, fresh.pairs.answers
    differ = (a.structure != b.structure) | _rows_that_differ(a.numbers, b.numbers)
    return int(differ.sum()) <= MAX_UNDECIDED * len(differ)


def _same_sweeps(stored: FaultDictionary, fresh: FaultDictionary) -> bool:
    """Return whether both have the same sweeps, apart from rounding to sixteen bits."""
    if _sweep_headers(stored) != _sweep_headers(fresh):
        return False
    for a, b in zip(_sweep_answers(stored), _sweep_answers(fresh), strict=True):
        if _rows_that_differ(a, b).any():
            return False
    return True


def _sweep_headers(dictionary: FaultDictionary) -> list[tuple[object, ...]]:
    """Return everything in the sweeps except their answers."""
    return [(sweep.id, sweep.calls, sweep.forms, sweep.detected_in) for sweep in dictionary.sweeps]


def _sweep_answers(dictionary: FaultDictionary) -> list[Tensor]:
    """Return the answers of all sweeps to all their calls, each with one row for each number."""
    return [answer for sweep in dictionary.sweeps for answer in sweep.answers]


def _rows_that_differ(a: Tensor, b: Tensor) -> Tensor:
    """Return (N,) bool: the rows of two (N, M) tensors that differ by more than rounding.

    The tolerance is relative to the largest finite number of both rows. NaN equals only NaN.
    """
    finite = [tensor.nan_to_num(0.0, 0.0, 0.0).abs() for tensor in (a, b)]
    largest = torch.maximum(*finite).amax(1, keepdim=True)
    is_near = (a - b).abs() <= SIXTEEN_BIT_TOLERANCE * largest  # False for NaN
    is_same = is_near | (a == b) | (a.isnan() & b.isnan())
    return ~is_same.all(1)
