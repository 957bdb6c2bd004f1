"""A training curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

RECENT = 50  # how many steps a loss is averaged over, because it varies from batch to batch


@dataclass(frozen=True)
class Curve:
    """losses: the training loss before each step. held_out: the loss on held-out text, by number of steps."""

    losses: tuple[float, ...]
    held_out: Mapping[int, float]

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.losses)

    def recent(self, step: int | None = None) -> float:
        """The training loss, averaged over the last steps before this one, by default before the end."""
        end = self.steps if step is None else step
        return fmean(self.losses[max(0, end - RECENT) : end])

    def until(self, step: int) -> Curve:
        """The curve up to this step."""
        return Curve(self.losses[:step], {at: loss for at, loss in self.held_out.items() if at <= step})
