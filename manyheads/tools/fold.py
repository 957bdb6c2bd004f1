"""Fold loops: in a sequence of steps, replace repetitions by one round and a count."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

LONGEST = 60  # the most steps of one round


@dataclass(frozen=True)
class Loop:
    """A loop: its first round and the number of rounds. `alike`: whether every round is exactly like the first."""

    body: tuple[Item, ...]
    times: int
    alike: bool

    def steps(self) -> list[int]:
        """The steps of the first round, inner loops unrolled once."""
        return [step for item in self.body for step in (item.steps() if isinstance(item, Loop) else [item])]


Item = int | Loop


def fold(order: Sequence[int], key: Callable[[int], Hashable]) -> tuple[Item, ...]:
    """Fold the loops in a sequence, shortest rounds first. Steps with the same key count as the same."""
    items: list[Item] = list(order)
    length = 1
    while length <= min(LONGEST, len(items) // 2):
        shorter = _rounds(items, [_loosely(item, key) for item in items], length)
        length = (
            1 if len(shorter) < len(items) else length + 1
        )  # start again: a folded loop may be part of an outer loop's round
        items = shorter
    return tuple(items)


def _loosely(item: Item, key: Callable[[int], Hashable]) -> Hashable:
    """The key of an item regardless of its count: in a growing loop, the inner loop's first run is a single step."""
    if isinstance(item, int):
        return key(item)
    body = tuple(_loosely(each, key) for each in item.body)
    return body[0] if len(body) == 1 else body


def _rounds(items: list[Item], keys: list[Hashable], length: int) -> list[Item]:
    """Fold every sequence of rounds of this length."""
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
