"""A number that was measured several times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from .cost import Cost


@dataclass(frozen=True)
class Spread:
    """The median, the least and the most."""

    middle: float
    least: float
    most: float

    def __str__(self) -> str:
        """Such as 61 (58 to 66); the middle alone where nothing else would be seen."""
        middle, least, most = (_three_digits(value) for value in (self.middle, self.least, self.most))
        return middle if least == most else f"{middle} ({least} to {most})"


def spread(values: Iterable[float]) -> Spread:
    """Of several measurements."""
    found = list(values)
    return Spread(median(found), min(found), max(found))


class Contestant(Protocol):
    """What can be run again and again."""

    def run(self) -> Cost:
        """What a submission costs this time."""
        ...


def in_turn(first: Contestant, second: Contestant, number: int) -> tuple[Cost, Cost]:
    """One pair. Every other pair begins with the other one: a machine that slows down favours nobody."""
    if number % 2:
        late, early = second.run(), first.run()
        return early, late
    return first.run(), second.run()


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
