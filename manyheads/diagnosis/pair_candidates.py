"""Which pairs of mutants a few answers do not rule out, by the diagnosis table, and which of two equal pairs is simpler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from ..checks.implementation import LocalRunner
from ..checks.local import CachedRunner
from ..checks.transcript import Exchange
from .agree import agree
from .bank import Bank, Mutant
from .pair_answers import Sketches
from .proofs import DOUBTS
from .table import Table

Members = Callable[[int], Sequence[int]]  # the members of a class, by its number, as their numbers in the bank


@dataclass(frozen=True)
class Probed:
    """What an attempt answers to probes. used: these, by their numbers in the table. replies: in brief.

    fits: (classes, probes) bool, which classes answer as it does.
    """

    used: list[int]
    fits: Tensor
    replies: Sequence[Sketches]

    def only(self, keep: Callable[[int], bool]) -> Probed:
        """Return what it answers to some of these probes."""
        left = [i for i, k in enumerate(self.used) if keep(k)]
        return Probed([self.used[i] for i in left], self.fits[:, left], [self.replies[i] for i in left])


def possible_pairs(table: Table, probed: Probed) -> Iterator[tuple[int, int]]:
    """Pairs of classes that no probe rules out, most likely first.

    On a probe where one fault changes nothing, the pair should answer as the other fault alone. Where both change
    something, the table holds their answer together; agreement there outweighs a disagreement elsewhere.
    """
    silent = table.silent[:, probed.used]
    doubts = silent.float() @ (~probed.fits).float().T  # [a, b]: on how many probes a changes nothing and b disagrees
    doubts = doubts + doubts.T
    overlap = (~silent).float() @ (~silent).float().T > 0
    ranked = [(0.0, a + b, a, b) for a, b in torch.triu((doubts == 0) & ~overlap, 1).nonzero().tolist()]
    pairs = table.pairs
    if len(pairs.first):
        first, second = pairs.first.long(), pairs.second.long()
        agrees, asked = torch.zeros(2, len(first), dtype=torch.bool)
        for k, reply in zip(probed.used, probed.replies, strict=True):
            here = pairs.probe == k
            asked |= here
            agrees[here] = pairs.answers.at(here).agree_with(reply)
        certain = agrees & ~pairs.answers.raised()
        doubt = doubts[first, second]
        good = (certain & (doubt <= DOUBTS)) | ((agrees | ~asked) & (doubt == 0))
        for i in good.nonzero().flatten().tolist():
            a, b = int(first[i]), int(second[i])
            ranked.append((float(doubt[i]) - 0.5 * bool(certain[i]), a + b, a, b))
    yield from ((a, b) for _, _, a, b in sorted(ranked))


def members_of(bank: Bank, table: Table, reference: CachedRunner, exchanges: Sequence[Exchange]) -> Members:
    """Return the members of each class that raise nowhere where the attempt, at sizes of no check, has an answer.

    At the sizes of the checks many mutants do nothing but raise, and are one class.
    """
    calls = [e.call for e in exchanges if not e.check and e.reply.raised is None]

    @cache
    def members(index: int) -> Sequence[int]:
        runners = {m: reference.of(bank.mutants[m].namespace) for m in table.classes[index]}
        return [m for m, runner in runners.items() if all(runner.execute(call).raised is None for call in calls)]

    return members


def simplest(
    bank: Bank, pair: Sequence[Mutant], reference: CachedRunner, exchanges: Sequence[Exchange]
) -> Sequence[Mutant]:
    """Return the pair that explains the exchanges with the fewest changes.

    One fault may leave a change of the other without effect: where heads are cut in one step, no other way to cut them
    does anything. A mutant that has the other changes alone is then the mistake.
    """
    for one, other in (pair, tuple(reversed(pair))) if len(pair) == 2 else ():
        for fewer in bank.mutants:
            if _is_part(fewer, one) and (namespace := bank.combine(fewer, other)) is not None:
                together = LocalRunner(namespace, reference.device, only_values=True)
                if all(agree(e.reply, together.execute(e.call)) for e in exchanges):
                    return simplest(bank, (fewer, other), reference, exchanges)
    return pair


def _is_part(fewer: Mutant, whole: Mutant) -> bool:
    """Return whether a mutant has some of another's changes and no others."""
    return len(fewer.faults) < len(whole.faults) and all(
        key in whole.faults and whole.faults[key] == value for key, value in fewer.faults.items()
    )
