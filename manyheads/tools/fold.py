"""Find loops in what ran: a sequence of steps, with what repeats folded into one round and a count."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

LONGEST = 60  # steps of one round


@dataclass(frozen=True)
class Loop:
    """The first round of something that ran several times. `alike`: every round is exactly like the first."""

    body: tuple[Item, ...]
    times: int
    alike: bool

    def steps(self) -> list[int]:
        """The steps of the first round, inner loops unrolled once."""
        return [step for item in self.body for step in (item.steps() if isinstance(item, Loop) else [item])]


Item = int | Loop


def fold(order: Sequence[int], key: Callable[[int], Hashable]) -> tuple[Item, ...]:
    """The order with loops folded, the shortest rounds first: rounds are steps with the same keys, one by one."""
    items: list[Item] = list(order)
    length = 1
    while length <= min(LONGEST, len(items) // 2):
        shorter = _rounds(items, [_loosely(item, key) for item in items], length)
        length = 1 if len(shorter) < len(items) else length + 1  # a folded loop may be in the round of an outer one
        items = shorter
    return tuple(items)


def _loosely(item: Item, key: Callable[[int], Hashable]) -> Hashable:
    """However often it ran: in a loop that grows, the first round of the inner loop is a single step."""
    if isinstance(item, int):
        return key(item)
    body = tuple(_loosely(each, key) for each in item.body)
    return body[0] if len(body) == 1 else body


def _rounds(items: list[Item], keys: list[Hashable], length: int) -> list[Item]:
    """The items with every run of rounds of this length folded."""
    found: list[Item] = []
    at = 0
    while at < len(items):
        times = 1
        while keys[at : at + length] == keys[at + times * length : at + (times + 1) * length]:
            times += 1
        if times == 1:
            found.append(items[at])
            at += 1
            continue
        rounds = [tuple(items[at + n * length : at + (n + 1) * length]) for n in range(times)]
        found.append(Loop(rounds[0], times, all(each == rounds[0] for each in rounds)))
        at += times * length
    return found
