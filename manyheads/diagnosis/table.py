"""Which mutants are worth replaying on an attempt: those that answer a few recorded calls, the *probes*, as it does.

Replaying a few hundred mutants and tens of thousands of pairs on each attempt's own inputs would cost seconds. So the attempt is
asked the probes, the recording says which mutants and pairs answer alike, and only those are replayed on its own inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.messages import Call
from ..checks.cast import map_call
from .bank import Bank, Mutant, Namespace
from .fingerprint import Facet, ReplyFingerprint, fingerprint_beside
from .pair_answers import Pairs, no_pairs
from .recording import Fingerprints, Probe

MEMBERS = 3  # how many members of a class are tried in combination with another fault
VALUES: tuple[Facet, ...] = ("outputs", "gradients")  # what a replay compares


@dataclass(frozen=True)
class Table:
    """Classes of mutants that answer every probe alike.

    calls: of the probes. classes: indices into the bank, most likely first. replies: to each probe, the reference's first.
    answers: (classes, probes), which of these replies a class gives, -1 where its answer varies.
    silent: (classes, probes) bool, whether a class changes nothing there. pairs: of classes, on a probe.
    """

    probes: tuple[Probe, ...]
    calls: tuple[Call, ...]
    classes: tuple[tuple[int, ...], ...]
    replies: tuple[Sequence[ReplyFingerprint], ...]
    answers: Tensor
    silent: Tensor
    pairs: Pairs

    def fitting(self, probe: int, reply: Reply) -> Tensor:
        """Return (classes,) bool: which classes answer a probe as an attempt does, or may do so."""
        known = self.replies[probe]
        fingerprint = fingerprint_beside(known[0], self.calls[probe], reply)
        agrees = [mutant.agrees(fingerprint, VALUES) for mutant in known]
        return torch.tensor([*agrees, True])[self.answers[:, probe]]  # -1 is the last


def table_of(recording: Fingerprints) -> Table:
    """Return the table of a recording."""
    content = recording.content
    heads: dict[int, list[int]] = {}
    for mutant, number in enumerate(content.classes):
        if number >= 0:
            heads.setdefault(number, []).append(mutant)
    classes = tuple(tuple(heads[number]) for number in sorted(heads))
    replies = tuple(content.replies[probe.index] for probe in content.probes)
    rows = [
        [
            -1 if (place := content.mutants[members[0]].answers[probe.index]) is None else place
            for probe in content.probes
        ]
        for members in classes
    ]
    answers = torch.tensor(rows, dtype=torch.long).view(len(classes), len(content.probes))
    silent = torch.zeros(answers.shape, dtype=torch.bool)
    for k, known in enumerate(replies):
        silent[:, k] = torch.tensor([*(other.agrees(known[0], VALUES) for other in known), False])[answers[:, k]]
    return Table(
        content.probes,
        tuple(_in_double(recording.calls[probe.index]) for probe in content.probes),
        classes,
        replies,
        answers,
        silent,
        _by_class(recording.pairs, classes, content.probes),
    )


def table_without_recording(bank: Bank) -> Table:
    """Return a table that rules out no mutant, for a bank of which nothing current is recorded."""
    classes = tuple((mutant,) for mutant in range(len(bank.mutants)))
    none = torch.zeros(len(classes), 0, dtype=torch.long)
    return Table((), (), classes, (), none, none.bool(), no_pairs())


def _in_double(call: Call) -> Call:
    return map_call(call, lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)


def _by_class(pairs: Pairs, classes: Sequence[Sequence[int]], probes: Sequence[Probe]) -> Pairs:
    """Return the pairs with the numbers of classes and of probes in place of those of mutants and of calls."""
    of_mutant = {members[0]: number for number, members in enumerate(classes)}
    of_call = {probe.index: number for number, probe in enumerate(probes)}
    first, second = (_mapped(column, of_mutant) for column in (pairs.first, pairs.second))
    return Pairs(first, second, _mapped(pairs.probe, of_call), pairs.answers)


def _mapped(column: Tensor, numbers: dict[int, int]) -> Tensor:
    if not len(column):
        return column
    known = torch.full((max(int(column.max()), *numbers) + 1,), -1, dtype=column.dtype)
    for place, number in numbers.items():
        known[place] = number
    return known[column.long()]


def combined(
    bank: Bank, first: Sequence[int], second: Sequence[int]
) -> Iterator[tuple[tuple[Mutant, Mutant], Namespace]]:
    """Yield combinations of the first members of two classes, if their faults can be combined: most likely first.

    Members of a class answer alike alone, but perhaps not in combination with another fault.
    """
    for a, b in product(first[:MEMBERS], second[:MEMBERS]):
        pair = bank.mutants[a], bank.mutants[b]
        if (namespace := bank.combine(*pair)) is not None:
            yield pair, namespace
