"""Mutants with a number that nobody can list: a constant in place of a scale, a fill that is too weak."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Namespace = Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Family:
    """A misconception, its knobs as a function of one positive number, the limits of that number, and the bank's `make`."""

    id: str
    knobs: Callable[[float], Mapping[str, object]]
    low: float
    high: float
    make: Callable[..., Namespace] = field(repr=False)

    def mutant(self, logarithm: float) -> Namespace:
        """Return the names of the mutant whose number has this logarithm."""
        return self.make(**self.knobs(math.exp(logarithm)))
