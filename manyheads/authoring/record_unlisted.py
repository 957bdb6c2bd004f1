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
from ..diagnosis.family import Namespace, ParametricMutant, Sweep, form_of, numbers_of
from ..diagnosis.fingerprint import ReplyFingerprint, as_due, fingerprint_beside
from ..diagnosis.pair_answers import Pairs, ReplySketch, no_pairs, sketch_reply
from ..diagnosis.recording import RecordedMutant
from ..diagnosis.same_places import sizes_of
from .record_calls import VALUES, RecordedCalls, Replies

MEMBERS = 3  # how many members of a class are tried in combination with another fault
# in place of a reply: the reference's, or one that rounding decides; an exception
_SILENT, _RAISED = 0, -1
CALLS, TENSORS = 6, 4  # the most calls of a family, and the most tensors of an answer
COARSE = 24  # of so many numbers one is asked of all calls

ReplyNumbers = tuple[
    int, ...
]  # of a class, for each call its reply: equal numbers for equal outputs


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
    cast_calls = [cast(calls[i], "float64") for i in compared]
    worth = _worth([*classes], [calls[i] for i in compared])
    asked_of, answers = list[tuple[int, int, int]](), list[ReplySketch]()
    for (member_row, members), (partner_row, partners) in combinations(classes.items(), 2):
        best = next(
            (k for k in worth if member_row[k] > _SILENT and partner_row[k] > _SILENT), None
        )
        if best is None or mutants[members[0]].id == mutants[partners[0]].id:
            continue
        # Members of a class answer alike alone, but perhaps not with another fault; some exclude
        # each other.
        pairs = product(members[:MEMBERS], partners[:MEMBERS])
        combined = next(
            filter(None, (bank.combine(bank.mutants[a], bank.mutants[b]) for a, b in pairs)), None
        )
        if combined is not None:
            reply = execute(combined, cast_calls[best], "", only_values=True)
            answers.append(sketch_reply(as_due(reply, replies[compared[best]][0])))
            asked_of.append((members[0], partners[0], compared[best]))
    if not answers:
        return no_pairs()
    first, second, probe = torch.tensor(asked_of, dtype=torch.int16).T.contiguous()
    columns = (
        torch.cat([getattr(row, name) for row in answers])
        for name in ("structure", "numbers", "scales")
    )
    return Pairs(first, second, probe, ReplySketch(*columns))


def _classes(
    outputs: Sequence[Sequence[int]], compared: Sequence[int], mutants: Sequence[RecordedMutant]
) -> Mapping[ReplyNumbers, Sequence[int]]:
    """Return the mutants that return the same, the likeliest first, by what they return; not those
    that change nothing.
    """
    classes: dict[ReplyNumbers, list[int]] = {}
    for number, mutant in enumerate(mutants):
        places = [mutant.answers[i] for i in compared]
        row = tuple(
            _SILENT if position is None else output_numbers[position]
            for position, output_numbers in zip(places, outputs, strict=True)
        )
        if any(row):
            classes.setdefault(row, []).append(number)
    return classes


def _outputs(replies: Sequence[ReplyFingerprint]) -> list[int]:
    """Return for each reply the number of the first one with the same outputs."""
    distinct, places = Replies(facets=("outputs",)), list[int]()
    for reply in replies:
        number = distinct.find(reply)
        places.append(distinct.add(reply) if number is None else number)
    return [
        _RAISED if reply.raised else position
        for reply, position in zip(replies, places, strict=True)
    ]


def _worth(rows: Sequence[ReplyNumbers], calls: Sequence[Call]) -> list[int]:
    """Return the places of the calls, first those that tell most pairs of classes apart for each
    run and step.
    """
    sizes = [Counter(row[k] for row in rows) for k in range(len(calls))]
    pairs = [len(rows) ** 2 - sum(size**2 for size in counts.values()) for counts in sizes]
    return sorted(
        range(len(calls)),
        key=lambda k: pairs[k] / (calls[k].runs * len(calls[k].steps)),
        reverse=True,
    )


def recorded_curves(bank: Bank, recorded: RecordedCalls) -> tuple[Sweep, ...]:
    """Return the curves of all families that show themselves in calls of two checks."""
    curves = (_curve(family, recorded) for family in bank.families)
    return tuple(curve for curve in curves if len(curve.calls) > 1)


def _curve(family: ParametricMutant, recorded: RecordedCalls) -> Sweep:
    indices = range(len(recorded.entries))
    mutants = [family.mutant(point) for point in family.grid]
    coarse = [
        [_answer(mutant, recorded, i) for i in indices] for mutant in mutants[COARSE // 2 :: COARSE]
    ]
    speaks = frozenset(
        i
        for i in indices
        if any(not row[i].is_same(recorded.fingerprints[i], VALUES) for row in coarse)
    )
    calls, sizes = recorded.calls, [len(numbers_of(expected)) for expected in recorded.fingerprints]
    able = [i for i in indices if is_comparable(calls[i]) and calls[i].cotangent is None]
    coarse_replies = {
        i: [row[i] for row in coarse] for i in able if 0 < sizes[i] <= TENSORS * PROJECTIONS
    }
    chosen = _chosen(recorded, coarse_replies)
    columns = [[_answer(mutant, recorded, i) for mutant in mutants] for i in chosen]
    every_form = [[form_of(reply) for reply in column] for column in columns]
    forms = [max(column, key=column.count) for column in every_form]  # the commonest
    # (points, N): the projections of the replies that have the form, and NaN in place of others.
    answers = list[Tensor]()
    for column, form in zip(columns, forms, strict=True):
        none = [torch.nan] * sum(PROJECTIONS for _, shape, _ in form if shape is not None)
        rows = [
            numbers_of(reply) if reply.raised is None and form_of(reply) == form else none
            for reply in column
        ]
        answers.append(torch.tensor(rows, dtype=torch.float64))
    return Sweep(family.id, family.step, tuple(chosen), tuple(forms), tuple(answers), speaks)


def _answer(mutant: Namespace, recorded: RecordedCalls, index: int) -> ReplyFingerprint:
    recorded_call = recorded.entries[index]
    return fingerprint_beside(
        recorded.fingerprints[index],
        recorded_call.call,
        recorded_call.answer(mutant, only_values=True),
    )


def _chosen(
    recorded: RecordedCalls, coarse_replies: Mapping[int, Sequence[ReplyFingerprint]]
) -> list[int]:
    """Return calls of different checks, with as many sizes that no other has as there are.

    coarse_replies: how a few of the mutants answer each call. It must tell half as many of them
    apart as any
        call does.
    """
    change_counts = {  # how many replies have numbers, and others than the one before
        i: sum(b.raised is None and not a.is_same(b, VALUES) for a, b in pairwise(replies))
        for i, replies in coarse_replies.items()
    }
    most = max(change_counts.values(), default=0)
    remaining = [i for i, count in change_counts.items() if count > 0 and 2 * count >= most]
    chosen, sizes = list[int](), set[tuple[str, int]]()
    while remaining and len(chosen) < CALLS:
        best = max(remaining, key=lambda i: len(_sizes(recorded, i) - sizes))
        sizes |= _sizes(recorded, best)
        chosen.append(best)
        remaining = [i for i in remaining if recorded.asked_by[i] != recorded.asked_by[best]]
    return sorted(chosen)


def _sizes(recorded: RecordedCalls, index: int) -> set[tuple[str, int]]:
    call = recorded.entries[index].call
    return {(target_of(call), size) for size in sizes_of(call)}
