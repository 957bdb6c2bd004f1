"""Run pairs of mutants, each pair on one call, and parametric mutants at many numbers.

A fault dictionary records these replies: the pairs, so that two mistakes in one attempt are named,
and the sweeps, so that the number of a parametric mutant is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations, pairwise, product

import torch
from torch import Tensor

from ..box.worker.answer_call import execute
from ..box.worker.messages import Call
from ..checks.runner import cast, target_of
from ..diagnosis.bank import (
    Bank,
    BuiltMutant,
    Namespace,
    ParametricMutant,
    Sweep,
    form_of,
    projections_of,
)
from ..diagnosis.compact_storage import Pairs, ReplySketch, no_pairs, sketch_reply
from ..diagnosis.fault_dictionary import RecordedMutant
from ..diagnosis.fingerprint import (
    PROJECTIONS,
    ReplyFingerprint,
    comparable_fingerprint,
    is_comparable,
    without_unexpected_tables,
)
from ..diagnosis.pass_fail_dictionary import sizes_of
from .choose_recorded_calls import VALUES, RecordedCalls, Replies
from .remembered_steps import RememberedSteps, SketchRow

MEMBERS = 3  # how many members of a class are tried in combination with another fault
# Numbers for replies that cannot show a mutant in a pair: the reference's reply or one that
# rounding decides (_SILENT), and an exception (_RAISED).
_SILENT, _RAISED = 0, -1
CALLS, TENSORS = 6, 4  # the most calls of a sweep, and the most tensors of a reply in it
COARSE = 24  # one of so many numbers of a sweep runs on all calls

# The replies of a class of mutants, one number for each call: equal numbers for equal outputs.
ReplyNumbers = tuple[int, ...]


def recorded_pairs(
    bank: Bank,
    calls: Sequence[Call],
    replies: Sequence[Sequence[ReplyFingerprint]],
    mutants: Sequence[RecordedMutant],
    steps: RememberedSteps,
) -> Pairs:
    """Run pairs of mutants on one call each, and return their replies.

    Mutants with equal outputs form a class, which its likeliest mutant represents. Each pair of
    classes runs on a call that detects both without an exception. If there are several, the call
    that separates the most classes for its cost is used. A pair is left out if there is no such
    call, if both mutants have the same misconception, or if their edits cannot be combined.

    Args:
        bank: The mutants.
        calls: The recorded calls.
        replies: For each call the different replies, the reference's first.
        mutants: The mutants of the bank with the indices of their replies, in the same order.
        steps: The known replies of pairs, which do not run again. New ones are added.
    """
    compared = [i for i, call in enumerate(calls) if is_comparable(call) and call.cotangent is None]
    classes = _classes([_outputs(replies[i]) for i in compared], compared, mutants)
    cast_calls = [cast(calls[i], "float64") for i in compared]
    worth = _worth([*classes], [calls[i] for i in compared])
    asked_of, rows = list[tuple[int, int, int]](), list[SketchRow]()
    for (member_row, members), (partner_row, partners) in combinations(classes.items(), 2):
        best = next(
            (k for k in worth if member_row[k] > _SILENT and partner_row[k] > _SILENT), None
        )
        if best is None or mutants[members[0]].id == mutants[partners[0]].id:
            continue
        # Members of a class give the same replies alone, but perhaps not with another fault. Some
        # cannot be combined.
        for a, b in product(members[:MEMBERS], partners[:MEMBERS]):
            mutant_a, mutant_b, call = bank.mutants[a], bank.mutants[b], compared[best]
            run = partial(_run_pair, bank, mutant_a, mutant_b, cast_calls[best], replies[call][0])
            row = steps.of_pair(mutant_a, mutant_b, call, run)
            if row is not None:
                rows.append(row)
                asked_of.append((members[0], partners[0], call))
                break
    if not rows:
        return no_pairs()
    first_mutants, second_mutants, probe = torch.tensor(asked_of, dtype=torch.int16).T.contiguous()
    structures, numbers, scales = zip(*rows, strict=True)
    sketches = ReplySketch(
        torch.tensor(structures, dtype=torch.int64),
        torch.tensor(numbers, dtype=torch.float32),
        torch.tensor(scales, dtype=torch.float32)[:, None],
    )
    return Pairs(first_mutants, second_mutants, probe, sketches)


def _run_pair(
    bank: Bank, mutant_a: BuiltMutant, mutant_b: BuiltMutant, call: Call, expected: ReplyFingerprint
) -> SketchRow | None:
    """Return a sketch of the reply of two mutants together, or None if they do not combine.

    Args:
        bank: The bank of both mutants.
        mutant_a: One mutant.
        mutant_b: The other mutant.
        call: The call, in float64.
        expected: The reference's reply to it.
    """
    combined = bank.combine(mutant_a, mutant_b)
    if not combined:
        return None
    reply = execute(combined, call, "", only_values=True)
    sketch = sketch_reply(without_unexpected_tables(reply, expected))
    (numbers,) = sketch.numbers.tolist()
    return int(sketch.structure), tuple(numbers), float(sketch.scales)


def _classes(
    outputs: Sequence[Sequence[int]], compared: Sequence[int], mutants: Sequence[RecordedMutant]
) -> Mapping[ReplyNumbers, Sequence[int]]:
    """Return the classes of mutants with equal outputs, the likeliest mutant of each first.

    Mutants that these calls do not detect are left out.

    Args:
        outputs: For each compared call and each different reply, a number for its outputs.
        compared: The indices of these calls.
        mutants: All mutants with their replies.
    """
    classes: dict[ReplyNumbers, list[int]] = {}
    for number, mutant in enumerate(mutants):
        reply_indices = [mutant.answers[i] for i in compared]
        row = tuple(
            _SILENT if reply_index is None else output_numbers[reply_index]
            for reply_index, output_numbers in zip(reply_indices, outputs, strict=True)
        )
        if any(row):
            classes.setdefault(row, []).append(number)
    return classes


def _outputs(replies: Sequence[ReplyFingerprint]) -> list[int]:
    """Return for each reply a number: the same for the same outputs, and _RAISED for exceptions.

    The outputs of the first reply, which is the reference's, have the number _SILENT.
    """
    distinct, numbers = Replies(fields=("outputs",)), list[int]()
    for reply in replies:
        number = distinct.find(reply)
        numbers.append(distinct.add(reply) if number is None else number)
    return [
        _RAISED if reply.raised else number for reply, number in zip(replies, numbers, strict=True)
    ]


def _worth(rows: Sequence[ReplyNumbers], calls: Sequence[Call]) -> list[int]:
    """Return the indices of the calls, the most valuable first.

    The value of a call is the number of pairs of classes that it separates, divided by its numbers
    of runs and steps.
    """
    pairs = list[int]()
    for k in range(len(calls)):
        sizes = Counter(row[k] for row in rows).values()
        pairs.append(len(rows) ** 2 - sum(size**2 for size in sizes))
    return sorted(
        range(len(calls)),
        key=lambda k: pairs[k] / (calls[k].runs * len(calls[k].steps)),
        reverse=True,
    )


def recorded_curves(
    bank: Bank, recorded: RecordedCalls, steps: RememberedSteps
) -> tuple[Sweep, ...]:
    """Return the sweeps of the parametric mutants that change numbers in calls of two checks.

    Args:
        bank: The parametric mutants.
        recorded: The recorded calls.
        steps: The known sweeps, which are not computed again. New ones are added.
    """
    curves = list[Sweep]()
    for family in bank.parametric_mutants:
        curves.append(steps.of_parametric_mutant(family, partial(_sweep_of, family, recorded)))
    return tuple(curve for curve in curves if len(curve.calls) > 1)


def _sweep_of(family: ParametricMutant, recorded: RecordedCalls) -> Sweep:
    """Return the replies of a parametric mutant at each point of its grid, on a few calls.

    A few points run on all calls. They show which calls detect the mutant, and which small calls
    separate its numbers best; only these run at all points.
    """
    calls, mutants = recorded.calls, [family.mutant(point) for point in family.grid]
    coarse_replies = dict[int, list[ReplyFingerprint]]()
    detecting, usable = set[int](), list[int]()
    for i, (call, expected) in enumerate(zip(calls, recorded.fingerprints, strict=True)):
        replies = [_answer(mutant, recorded, i) for mutant in mutants[COARSE // 2 :: COARSE]]
        coarse_replies[i] = replies
        if any(not reply.is_same(expected, VALUES) for reply in replies):
            detecting.add(i)
        is_small = 0 < len(projections_of(expected)) <= TENSORS * PROJECTIONS
        if is_comparable(call) and call.cotangent is None and is_small:
            usable.append(i)
    chosen = _calls_of_many_sizes(recorded, {i: coarse_replies[i] for i in usable})
    forms, answers = [], list[Tensor]()
    for i in chosen:
        replies = [_answer(mutant, recorded, i) for mutant in mutants]
        reply_forms = list(map(form_of, replies))
        form = max(reply_forms, key=reply_forms.count)  # the commonest
        # (points, N): the projections of the replies that have the form, NaN for other replies.
        absent = [torch.nan] * sum(PROJECTIONS for _, shape, _ in form if shape is not None)
        rows = [
            projections_of(reply) if reply.raised is None and reply_form == form else absent
            for reply, reply_form in zip(replies, reply_forms, strict=True)
        ]
        forms.append(form)
        answers.append(torch.tensor(rows, dtype=torch.float64))
    speaks = frozenset(detecting)
    return Sweep(family.id, family.step, tuple(chosen), tuple(forms), tuple(answers), speaks)


def _answer(mutant: Namespace, recorded: RecordedCalls, index: int) -> ReplyFingerprint:
    recorded_call = recorded.entries[index]
    return comparable_fingerprint(
        recorded.fingerprints[index],
        recorded_call.call,
        recorded_call.answer(mutant, only_values=True),
    )


def _calls_of_many_sizes(
    recorded: RecordedCalls, coarse_replies: Mapping[int, Sequence[ReplyFingerprint]]
) -> list[int]:
    """Return at most CALLS calls of different checks, with many different sizes of tensors.

    A call can be chosen if it separates at least half as many mutants as the best call does.

    Args:
        recorded: All calls.
        coarse_replies: The replies of a few mutants of one sweep to each usable call.
    """
    change_counts = {i: _changes(replies) for i, replies in coarse_replies.items()}
    highest = max(change_counts.values(), default=0)
    remaining = [i for i, count in change_counts.items() if count > 0 and 2 * count >= highest]
    chosen, sizes = list[int](), set[tuple[str, int]]()
    while remaining and len(chosen) < CALLS:
        best = max(remaining, key=lambda i: len(_sizes(recorded, i) - sizes))
        sizes |= _sizes(recorded, best)
        chosen.append(best)
        remaining = [i for i in remaining if recorded.asked_by[i] != recorded.asked_by[best]]
    return sorted(chosen)


def _changes(replies: Sequence[ReplyFingerprint]) -> int:
    """Return how many replies have numbers that differ from those of the reply before."""
    return sum(b.raised is None and not a.is_same(b, VALUES) for a, b in pairwise(replies))


def _sizes(recorded: RecordedCalls, index: int) -> set[tuple[str, int]]:
    call = recorded.entries[index].call
    return {(target_of(call), size) for size in sizes_of(call)}
