"""Record how mistakes answer that no mutant stands for: two at once, each pair on one call, and
those with a number, number by number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise, product

import torch
from torch import Tensor

from ..box.worker.execute import execute
from ..box.worker.messages import Call
from ..checks.cast import cast
from ..checks.projection import PROJECTIONS
from ..checks.transcript import target_of
from ..diagnosis.agree import is_comparable
from ..diagnosis.bank import Bank
from ..diagnosis.family import Curve, Family, Namespace, form_of, numbers_of
from ..diagnosis.fingerprint import ReplyFingerprint, as_due, fingerprint_beside
from ..diagnosis.pair_answers import Pairs, Sketches, brief, no_pairs
from ..diagnosis.recording import RecordedMutant
from ..diagnosis.same_places import sizes_of
from .record_calls import VALUES, RecordedCalls, Replies

MEMBERS = 3  # how many members of a class are tried in combination with another fault
# in place of a reply: the reference's, or one that rounding decides; an exception
_SILENT, _RAISED = 0, -1
CALLS, TENSORS = 6, 4  # the most calls of a family, and the most tensors of an answer
COARSE = 24  # of so many numbers one is asked of all calls

Row = tuple[int, ...]  # of a class, for each call its reply: equal numbers for equal outputs


def recorded_pairs(
    bank: Bank,
    calls: Sequence[Call],
    replies: Sequence[Sequence[ReplyFingerprint]],
    mutants: Sequence[RecordedMutant],
) -> Pairs:
    """Ask pairs of classes of mutants that return the same, each by its likeliest mutant, once.

    Asked is a call to which both return something else than the reference, of those the one that
    tells most classes apart for what it costs.
    """
    compared = [i for i, call in enumerate(calls) if is_comparable(call) and call.cotangent is None]
    classes = _classes([_outputs(replies[i]) for i in compared], compared, mutants)
    asked = [cast(calls[i], "float64") for i in compared]
    worth = _worth([*classes], [calls[i] for i in compared])
    asked_of, answers = list[tuple[int, int, int]](), list[Sketches]()
    for (one, members), (other, others) in combinations(classes.items(), 2):
        best = next((k for k in worth if one[k] > _SILENT and other[k] > _SILENT), None)
        if best is None or mutants[members[0]].id == mutants[others[0]].id:
            continue
        # Members of a class answer alike alone, but perhaps not with another fault; some exclude
        # each other.
        pairs = product(members[:MEMBERS], others[:MEMBERS])
        made = next(
            filter(None, (bank.combine(bank.mutants[a], bank.mutants[b]) for a, b in pairs)), None
        )
        if made is not None:
            reply = execute(made, asked[best], "", only_values=True)
            answers.append(brief(as_due(reply, replies[compared[best]][0])))
            asked_of.append((members[0], others[0], compared[best]))
    if not answers:
        return no_pairs()
    first, second, probe = torch.tensor(asked_of, dtype=torch.int16).T.contiguous()
    parts = (
        torch.cat([getattr(row, name) for row in answers])
        for name in ("structure", "numbers", "scales")
    )
    return Pairs(first, second, probe, Sketches(*parts))


def _classes(
    outputs: Sequence[Sequence[int]], compared: Sequence[int], mutants: Sequence[RecordedMutant]
) -> Mapping[Row, Sequence[int]]:
    """Return the mutants that return the same, the likeliest first, by what they return; not those
    that change nothing.
    """
    classes: dict[Row, list[int]] = {}
    for number, mutant in enumerate(mutants):
        places = [mutant.answers[i] for i in compared]
        row = tuple(
            _SILENT if place is None else known[place]
            for place, known in zip(places, outputs, strict=True)
        )
        if any(row):
            classes.setdefault(row, []).append(number)
    return classes


def _outputs(replies: Sequence[ReplyFingerprint]) -> list[int]:
    """Return for each reply the number of the first one with the same outputs."""
    known, places = Replies(facets=("outputs",)), list[int]()
    for reply in replies:
        number = known.find(reply)
        places.append(known.add(reply) if number is None else number)
    return [
        _RAISED if reply.raised else place for reply, place in zip(replies, places, strict=True)
    ]


def _worth(rows: Sequence[Row], calls: Sequence[Call]) -> list[int]:
    """Return the places of the calls, first those that tell most pairs of classes apart for each
    run and step.
    """
    sizes = [Counter(row[k] for row in rows) for k in range(len(calls))]
    pairs = [len(rows) ** 2 - sum(size**2 for size in each.values()) for each in sizes]
    return sorted(
        range(len(calls)),
        key=lambda k: pairs[k] / (calls[k].runs * len(calls[k].steps)),
        reverse=True,
    )


def recorded_curves(bank: Bank, recorded: RecordedCalls) -> tuple[Curve, ...]:
    """Return the curves of all families that show themselves in calls of two checks."""
    curves = (_curve(family, recorded) for family in bank.families)
    return tuple(curve for curve in curves if len(curve.calls) > 1)


def _curve(family: Family, recorded: RecordedCalls) -> Curve:
    every = range(len(recorded.every))
    mutants = [family.mutant(point) for point in family.grid]
    coarse = [
        [_answer(each, recorded, i) for i in every] for each in mutants[COARSE // 2 :: COARSE]
    ]
    speaks = frozenset(
        i for i in every if any(not row[i].is_same(recorded.right[i], VALUES) for row in coarse)
    )
    calls, sizes = recorded.calls, [len(numbers_of(right)) for right in recorded.right]
    able = [i for i in every if is_comparable(calls[i]) and calls[i].cotangent is None]
    known = {i: [row[i] for row in coarse] for i in able if 0 < sizes[i] <= TENSORS * PROJECTIONS}
    chosen = _chosen(recorded, known)
    columns = [[_answer(each, recorded, i) for each in mutants] for i in chosen]
    every_form = [[form_of(each) for each in column] for column in columns]
    forms = [max(column, key=column.count) for column in every_form]  # the commonest
    # (points, N): the projections of the replies that have the form, and NaN in place of others.
    answers = list[Tensor]()
    for column, form in zip(columns, forms, strict=True):
        none = [torch.nan] * sum(PROJECTIONS for _, shape, _ in form if shape is not None)
        rows = [
            numbers_of(each) if each.raised is None and form_of(each) == form else none
            for each in column
        ]
        answers.append(torch.tensor(rows, dtype=torch.float64))
    return Curve(family.id, family.step, tuple(chosen), tuple(forms), tuple(answers), speaks)


def _answer(mutant: Namespace, recorded: RecordedCalls, index: int) -> ReplyFingerprint:
    asked = recorded.every[index]
    return fingerprint_beside(
        recorded.right[index], asked.call, asked.answer(mutant, only_values=True)
    )


def _chosen(recorded: RecordedCalls, known: Mapping[int, Sequence[ReplyFingerprint]]) -> list[int]:
    """Return calls of different checks, with as many sizes that no other has as there are.

    known: how a few of the mutants answer each call. It must tell half as many of them apart as any
        call does.
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


def _sizes(recorded: RecordedCalls, index: int) -> set[tuple[str, int]]:
    call = recorded.every[index].call
    return {(target_of(call), size) for size in sizes_of(call)}
