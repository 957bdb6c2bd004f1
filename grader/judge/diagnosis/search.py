"""Find the mutant, or the pair, that answers as the attempt did: on every comparable call, not only the failing one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from ...box.worker.messages import Reply
from ..attempt import Exchange
from ..candidate import LocalPerformer, Performer
from .agree import agree
from .bank import Bank, Mutant


@dataclass(frozen=True)
class Explanation:
    """Mutants that together give the attempt's values, and ids that stand for other mutants with the same values."""

    mutants: tuple[Mutant, ...]
    alternatives: tuple[str, ...] = ()


class Replay:
    """The same calls, answered by trusted code; every answer is computed once."""

    def __init__(self, performer: Performer, exchanges: Sequence[Exchange]) -> None:
        self._performer, self._exchanges = performer, exchanges
        self._replies: dict[int, Reply] = {}

    def __getitem__(self, index: int) -> Reply:
        if index not in self._replies:
            self._replies[index] = self._performer.perform(self._exchanges[index].call)
        return self._replies[index]

    def explains(self) -> bool:
        """Whether every answer agrees with the attempt's. Stops at the first that does not."""
        return all(self.agrees(i) for i in range(len(self._exchanges)))

    def agrees(self, index: int) -> bool:
        """Whether this answer agrees with the attempt's."""
        return agree(self._exchanges[index].reply, self[index])


def explain_values(bank: Bank, reference: Performer, exchanges: Sequence[Exchange], device: str) -> Explanation | None:
    """What explains the values: nothing at all (no fault), one mutant, or two. None: nothing in the bank does.

    Put the exchanges that failed first: they tell mutants apart soonest.
    """
    right = Replay(reference, exchanges)
    if right.explains():
        return Explanation(())
    replays = [Replay(LocalPerformer(m.namespace, device), exchanges) for m in bank.mutants]
    found = [m for m, replay in zip(bank.mutants, replays, strict=True) if replay.explains()]
    if found:
        others = dict.fromkeys(m.id for m in found[1:] if m.id != found[0].id)
        return Explanation((found[0],), tuple(others))
    for first, second in _pairs_worth_trying(bank, right, replays, exchanges):
        both = bank.combine(first, second)
        if both is not None and Replay(LocalPerformer(both, device), exchanges).explains():
            return Explanation((first, second))
    return None


def _pairs_worth_trying(
    bank: Bank, right: Replay, replays: Sequence[Replay], exchanges: Sequence[Exchange]
) -> Iterator[tuple[Mutant, Mutant]]:
    """Pairs that the first few calls do not rule out.

    On a call where one fault changes nothing, the pair answers as the other fault alone does;
    so that one must agree with the attempt there.
    """
    probes = range(min(len(exchanges), 6))
    silent = [[agree(replay[i], right[i]) for i in probes] for replay in replays]
    fits = [[replay.agrees(i) for i in probes] for replay in replays]
    active = [i for i in range(len(replays)) if not all(silent[i])]
    for a, b in combinations(active, 2):
        if all((not silent[a][i] or fits[b][i]) and (not silent[b][i] or fits[a][i]) for i in probes):
            yield bank.mutants[a], bank.mutants[b]
