"""Which mutants answer all comparable calls alike, which few calls tell them apart, and how pairs of them answer these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import torch
from torch import Tensor

from ..box.worker.messages import Call
from ..checks.implementation import LocalRunner
from ..diagnosis.agree import is_comparable
from ..diagnosis.bank import Bank, Mutant, Namespace
from ..diagnosis.fingerprint import Facet, ReplyFingerprint
from ..diagnosis.pair_answers import Pairs, Sketches, brief, no_pairs
from ..diagnosis.recording import RecordedMutant
from .mutant_answers import Replies

MEMBERS = 3  # how many members of a class are tried in combination with another fault
VALUES: tuple[Facet, ...] = ("outputs", "gradients")  # by which classes are told apart
_VARIES, _UNKNOWN = -1, -2  # in place of a value: decided by rounding; an exception of unknown kind


@dataclass(frozen=True)
class Classes:
    """Mutants in classes that answer alike.

    calls: the comparable calls. values: (classes, calls), equal numbers for equal values, 0 for the reference's.
    returned: (classes, calls) bool, whether it is no exception. of: for each mutant its class, -1 where it changes no value.
    """

    calls: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    values: Tensor
    returned: Tensor
    of: tuple[int, ...]

    @property
    def speaks(self) -> Tensor:
        """(classes, calls) bool: whether a class changes something there for sure."""
        return (self.values != 0) & (self.values != _VARIES)


def classes_of(
    calls: Sequence[Call], replies: Sequence[Sequence[ReplyFingerprint]], mutants: Sequence[RecordedMutant]
) -> Classes:
    """Return the mutants in classes, the likeliest mutant of each first."""
    compared = tuple(i for i, call in enumerate(calls) if is_comparable(call))
    values = {i: _values_of(replies[i]) for i in compared}
    members: dict[tuple[int, ...], list[int]] = {}
    for number, mutant in enumerate(mutants):
        row = tuple(_VARIES if (place := mutant.answers[i]) is None else values[i][place] for i in compared)
        if any(row):
            members.setdefault(row, []).append(number)
    of = {mutant: number for number, of_one in enumerate(members.values()) for mutant in of_one}
    heads = [mutants[member[0]] for member in members.values()]
    returned = [
        [(place := head.answers[i]) is not None and replies[i][place].raised is None for i in compared]
        for head in heads
    ]
    return Classes(
        compared,
        tuple(map(tuple, members.values())),
        torch.tensor([*members], dtype=torch.long).view(len(members), len(compared)),
        torch.tensor(returned, dtype=torch.bool).view(len(members), len(compared)),
        tuple(of.get(number, -1) for number in range(len(mutants))),
    )


def _values_of(replies: Sequence[ReplyFingerprint]) -> list[int]:
    """Return for each reply the place of the first one with the same values."""
    known, places = Replies(VALUES), list[int]()
    first: list[int] = []  # the place of each of the different ones
    for place, reply in enumerate(replies):
        number = known.find(reply)
        if number is None:
            number = known.add(reply)
            first.append(place)
        places.append(_UNKNOWN if reply.raised == "other" else first[number])
    return places


def probes_of(calls: Sequence[Call], classes: Classes) -> list[int]:
    """Return the numbers of as few comparable calls as tell all classes from each other and from the reference.

    Calls with gradients are chosen only where no other call tells.
    """
    gradients = [calls[i].cotangent is not None for i in classes.calls]
    every = [_differing(classes, k) for k in range(len(classes.calls))]
    left = torch.stack(every).any(0) if every else torch.zeros(0, dtype=torch.bool)
    kept: list[int] = []
    while bool(left.any()):
        gains = [int((each & left).sum()) for each in every]
        best = max(range(len(every)), key=lambda k: (bool(gains[k]) and not gradients[k], gains[k]))
        kept.append(best)
        left &= ~every[best]
    return sorted(kept)


def _differing(classes: Classes, k: int) -> Tensor:
    """Return (classes, classes + 1) bool: which classes differ in this call; the last column is the reference."""
    values = classes.values[:, k]
    varies = values == _VARIES
    apart = (values[:, None] != values[None, :]) & ~varies[:, None] & ~varies[None, :]
    return torch.cat([apart, classes.speaks[:, k][:, None]], 1)


def recorded_pairs(bank: Bank, calls: Sequence[Call], classes: Classes, probes: Sequence[int]) -> Pairs:
    """Ask every pair of classes that both change something in some probe, once. Each class is its likeliest mutant.

    probes: as numbers of the comparable calls.
    """
    columns: tuple[list[int], list[int], list[int]] = ([], [], [])
    replies: list[Sketches] = []
    speaks = classes.speaks[:, list(probes)]
    told_apart = [int(_differing(classes, k).sum()) for k in probes]
    gradients = [calls[classes.calls[k]].cotangent is not None for k in probes]
    returned = classes.returned[:, list(probes)].tolist()
    for a, b in combinations(range(len(classes.members)), 2):
        both = (speaks[a] & speaks[b]).nonzero().flatten().tolist()
        made = next(_combined(bank, classes.members[a], classes.members[b]), None) if both else None
        if made is None:
            continue
        # Prefer a probe on which neither raises, then one without gradients, of which nothing is kept and which cost as much
        # as all else, then the one that tells most classes apart.
        best = max(both, key=lambda k: (returned[a][k] and returned[b][k], not gradients[k], told_apart[k]))
        index = classes.calls[probes[best]]
        replies.append(brief(LocalRunner(made[1], only_values=True).execute(calls[index])))
        for column, number in zip(columns, (classes.members[a][0], classes.members[b][0], index), strict=True):
            column.append(number)
    if not replies:
        return no_pairs()
    first, second, probe = (torch.tensor(column, dtype=torch.int16) for column in columns)
    parts = (torch.cat([getattr(row, name) for row in replies]) for name in ("structure", "numbers", "scales"))
    return Pairs(first, second, probe, Sketches(*parts))


def _combined(
    bank: Bank, first: Sequence[int], second: Sequence[int]
) -> Iterator[tuple[tuple[Mutant, Mutant], Namespace]]:
    """Yield combinations of the first members of two classes, if their faults can be combined: most likely first.

    Members of a class answer alike alone, but perhaps not in combination with another fault.
    """
    for a, b in product(first[:MEMBERS], second[:MEMBERS]):
        pair = bank.mutants[a], bank.mutants[b]
        if (namespace := bank.combine(*pair)) is not None:
            yield pair, namespace
