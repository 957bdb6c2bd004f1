"""Find loops in what ran: a sequence of steps, with what repeats folded into one round and a count."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

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
    """The order with loops folded: rounds of the same steps first, then rounds whose steps have the same key."""
    items = _folded(list(order), lambda item: item, alike=True)
    return _folded_loosely(items, key)


def _folded_loosely(items: Sequence[Item], key: Callable[[int], Hashable]) -> tuple[Item, ...]:
    inside = [replace(i, body=_folded_loosely(i.body, key)) if isinstance(i, Loop) else i for i in items]
    return tuple(_folded(inside, lambda item: _loosely(item, key), alike=False))


def _loosely(item: Item, key: Callable[[int], Hashable]) -> Hashable:
    """However often it ran: in a loop that grows, the first round of the inner loop is a single step."""
    if isinstance(item, int):
        return key(item)
    body = tuple(_loosely(each, key) for each in item.body)
    return body[0] if len(body) == 1 else body


def _folded(items: list[Item], key: Callable[[Item], Hashable], *, alike: bool) -> list[Item]:
    length = 1
    while length <= min(LONGEST, len(items) // 2):
        shorter = _rounds(items, [key(item) for item in items], length, alike)
        length = 1 if len(shorter) < len(items) else length + 1  # a folded loop may be the round of an outer one
        items = shorter
    return items


def _rounds(items: list[Item], keys: list[Hashable], length: int, alike: bool) -> list[Item]:
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
        body = tuple(items[at : at + length])
        exact = alike or all(body == tuple(items[at + n * length : at + (n + 1) * length]) for n in range(times))
        found.append(Loop(body, times, exact))
        at += times * length
    return found
