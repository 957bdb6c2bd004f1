"""Record how pairs of mutants answer: two mistakes at once, each pair on one call in which both change what is returned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, product

import torch

from ..box.worker.execute import execute
from ..box.worker.messages import Call
from ..checks.cast import cast
from ..diagnosis.agree import is_comparable
from ..diagnosis.bank import Bank
from ..diagnosis.family import Namespace
from ..diagnosis.fingerprint import ReplyFingerprint, as_due
from ..diagnosis.pair_answers import Pairs, Sketches, brief, no_pairs
from ..diagnosis.recording import RecordedMutant
from .mutant_answers import Replies

MEMBERS = 3  # how many members of a class are tried in combination with another fault
_SILENT, _RAISED = 0, -1  # in place of a reply: the reference's, or one that rounding decides; an exception

Row = tuple[int, ...]  # of a class, for each call its reply: equal numbers for equal outputs


def recorded_pairs(
    bank: Bank, calls: Sequence[Call], replies: Sequence[Sequence[ReplyFingerprint]], mutants: Sequence[RecordedMutant]
) -> Pairs:
    """Ask pairs of classes of mutants that return the same, each by its likeliest mutant, once.

    Asked is a call to which both return something else than the reference, of those the one that tells most classes apart for
    what it costs.
    """
    compared = [i for i, call in enumerate(calls) if is_comparable(call) and call.cotangent is None]
    classes = _classes([_outputs(replies[i]) for i in compared], compared, mutants)
    asked = [cast(calls[i], "float64") for i in compared]
    worth = _worth([*classes], [calls[i] for i in compared])
    columns: tuple[list[int], list[int], list[int]] = ([], [], [])
    answers: list[Sketches] = []
    for (one, members), (other, others) in combinations(classes.items(), 2):
        best = next((k for k in worth if one[k] > _SILENT and other[k] > _SILENT), None)
        if best is None or mutants[members[0]].id == mutants[others[0]].id:
            continue
        if (made := _combined(bank, members, others)) is not None:
            reply = execute(made, asked[best], "", only_values=True)
            answers.append(brief(as_due(reply, replies[compared[best]][0])))
            for column, number in zip(columns, (members[0], others[0], compared[best]), strict=True):
                column.append(number)
    if not answers:
        return no_pairs()
    first, second, probe = (torch.tensor(column, dtype=torch.int16) for column in columns)
    parts = (torch.cat([getattr(row, name) for row in answers]) for name in ("structure", "numbers", "scales"))
    return Pairs(first, second, probe, Sketches(*parts))


def _classes(
    outputs: Sequence[Sequence[int]], compared: Sequence[int], mutants: Sequence[RecordedMutant]
) -> Mapping[Row, Sequence[int]]:
    """Return the mutants that return the same, the likeliest first, by what they return; not those that change nothing."""
    classes: dict[Row, list[int]] = {}
    for number, mutant in enumerate(mutants):
        places = [mutant.answers[i] for i in compared]
        row = tuple(_SILENT if place is None else known[place] for place, known in zip(places, outputs, strict=True))
        if any(row):
            classes.setdefault(row, []).append(number)
    return classes


def _outputs(replies: Sequence[ReplyFingerprint]) -> list[int]:
    """Return for each reply the number of the first one with the same outputs."""
    known, places = Replies(("outputs",)), list[int]()
    for reply in replies:
        number = known.find(reply)
        places.append(known.add(reply) if number is None else number)
    return [_RAISED if reply.raised else place for reply, place in zip(replies, places, strict=True)]


def _worth(rows: Sequence[Row], calls: Sequence[Call]) -> list[int]:
    """Return the places of the calls, first those that tell most pairs of classes apart for each run and step."""

    def told_apart(k: int) -> float:
        sizes = Counter(row[k] for row in rows)
        pairs = len(rows) ** 2 - sum(size**2 for size in sizes.values())
        return pairs / (calls[k].runs * len(calls[k].steps))

    return sorted(range(len(calls)), key=told_apart, reverse=True)


def _combined(bank: Bank, first: Sequence[int], second: Sequence[int]) -> Namespace | None:
    """Return the first combination of the first members of two classes, likeliest first; None if their faults exclude each other.

    Members of a class answer alike alone, but perhaps not in combination with another fault.
    """
    pairs = product(first[:MEMBERS], second[:MEMBERS])
    made = (bank.combine(bank.mutants[a], bank.mutants[b]) for a, b in pairs)
    return next((namespace for namespace in made if namespace is not None), None)
