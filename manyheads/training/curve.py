"""How a loss fell, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

RECENT = 50  # steps over which a loss is averaged: from batch to batch it jumps


@dataclass(frozen=True)
class Curve:
    """losses: while learning, before each step. held_out: after so many steps, on text that it has not read."""

    losses: tuple[float, ...]
    held_out: Mapping[int, float]

    @property
    def steps(self) -> int:
        """How many were taken."""
        return len(self.losses)

    def recent(self, step: int | None = None) -> float:
        """The loss while learning, averaged over the last steps before this one, by default the end."""
        end = self.steps if step is None else step
        return fmean(self.losses[max(0, end - RECENT) : end])

    def until(self, step: int) -> Curve:
        """Its first part."""
        return Curve(self.losses[:step], {at: loss for at, loss in self.held_out.items() if at <= step})
