"""Choose the calls on which a mistake with a number shows, and record how its mutants answer them, number by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from ..checks.projection import PROJECTIONS
from ..checks.transcript import target_of
from ..diagnosis.agree import is_comparable
from ..diagnosis.bank import Bank
from ..diagnosis.family import Curve, Family, Form, Namespace, form_of, numbers_of
from ..diagnosis.fingerprint import ReplyFingerprint, fingerprint_beside
from ..diagnosis.same_places import sizes_of
from .record_calls import RecordedCalls
from .recorded_call import VALUES

CALLS, TENSORS = 6, 4  # the most calls of a family, and the most tensors of an answer
COARSE = 12  # of so many numbers one is asked of all calls


def recorded_curves(bank: Bank, recorded: RecordedCalls) -> tuple[Curve, ...]:
    """Return the curves of all families that show themselves in calls of two checks."""
    curves = (_curve(family, recorded) for family in bank.families)
    return tuple(curve for curve in curves if len(curve.calls) > 1)


def _curve(family: Family, recorded: RecordedCalls) -> Curve:
    every = range(len(recorded.every))
    mutants = [family.mutant(point) for point in family.grid]
    coarse = [[_answer(each, recorded, i) for i in every] for each in mutants[COARSE // 2 :: COARSE]]
    speaks = frozenset(i for i in every if any(not row[i].is_same(recorded.right[i], VALUES) for row in coarse))
    known = {i: [row[i] for row in coarse] for i in every if _can_be_recorded(recorded, i)}
    calls = _chosen(recorded, known)
    columns = [[_answer(each, recorded, i) for each in mutants] for i in calls]
    every_form = [[form_of(each) for each in column] for column in columns]
    forms = [max(column, key=column.count) for column in every_form]  # the commonest
    answers = [_numbers(column, form) for column, form in zip(columns, forms, strict=True)]
    return Curve(family.id, family.step, tuple(calls), tuple(forms), tuple(answers), speaks)


def _answer(mutant: Namespace, recorded: RecordedCalls, index: int) -> ReplyFingerprint:
    asked = recorded.every[index]
    return fingerprint_beside(recorded.right[index], asked.call, asked.answer(mutant, only_values=True))


def _chosen(recorded: RecordedCalls, known: Mapping[int, Sequence[ReplyFingerprint]]) -> list[int]:
    """Return calls of different checks, with as many sizes that no other has as there are.

    known: how a few of the mutants answer each call. It must tell half as many of them apart as any call does.
    """
    told = {  # how many replies have numbers, and others than the one before
        i: sum(b.raised is None and not a.is_same(b, VALUES) for a, b in pairwise(replies))
        for i, replies in known.items()
    }
    most = max(told.values(), default=0)
    left = [i for i, count in told.items() if count > 0 and 2 * count >= most]
    chosen, sizes = list[int](), set[tuple[str, int]]()
    while left and len(chosen) < CALLS:
        best = max(left, key=lambda i: len(_sizes(recorded, i) - sizes))
        sizes |= _sizes(recorded, best)
        chosen.append(best)
        left = [i for i in left if recorded.asked_by[i] != recorded.asked_by[best]]
    return sorted(chosen)


def _can_be_recorded(recorded: RecordedCalls, index: int) -> bool:
    call, right = recorded.every[index].call, recorded.right[index]
    numbers = len(numbers_of(right))
    return is_comparable(call) and call.cotangent is None and 0 < numbers <= TENSORS * PROJECTIONS


def _sizes(recorded: RecordedCalls, index: int) -> set[tuple[str, int]]:
    call = recorded.every[index].call
    return {(target_of(call), size) for size in sizes_of(call)}


def _numbers(replies: Sequence[ReplyFingerprint], form: Form) -> Tensor:
    """Return (points, N): the projections of the replies that have this form, and NaN in place of others."""
    none = [torch.nan] * sum(PROJECTIONS for _, shape, _ in form if shape is not None)
    rows = [numbers_of(each) if each.raised is None and form_of(each) == form else none for each in replies]
    return torch.tensor(rows, dtype=torch.float64)
