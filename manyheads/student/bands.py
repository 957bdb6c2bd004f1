"""Tables to draw: a panel for each, and bands of panels side by side, with the picture in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

HIDDEN = -1e4  # a score this low counts as −∞
NONE = 1e-4  # a difference this small counts as rounding
Kind = Literal["numbers", "weights", "mask", "difference"]
APART = "yours − expected"


@dataclass(frozen=True)
class Panel:
    """A table to draw. `values`: None if there is nothing to show; then `note` says why."""

    title: str
    values: Tensor | None  # (rows, columns)
    kind: Kind = "numbers"
    note: str = ""


@dataclass(frozen=True)
class Band:
    """Panels side by side. Panels of one kind share a scale. labels: the names of rows and of columns, if they have any."""

    title: str
    panels: tuple[Panel, ...]
    rows: str
    columns: str
    labels: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the band has numbers of the student that are not the expected ones."""
        last = self.panels[-1]
        return last.kind == "difference" and last.values is not None and not is_none(last.values)


def is_none(apart: Tensor) -> bool:
    """Return whether this difference is only rounding."""
    return not bool(apart.isnan().any() or (apart.abs() > NONE).any())


def compared(title: str, wanted: Tensor, mine: Tensor, kind: Kind, rows: str, columns: str) -> Band:
    """Return a band of the expected values, the student's and the difference."""
    apart = Panel(APART, difference(mine, wanted), "difference")
    return Band(title, (Panel("expected", wanted, kind), Panel("yours", mine, kind), apart), rows, columns)


def difference(found: Tensor, expected: Tensor) -> Tensor:
    """Return found − expected; zero where both are hidden, NaN where only one is hidden."""
    a, b = (t.double() for t in (found, expected))
    hidden = (a < HIDDEN) & (b < HIDDEN)
    apart = a - b
    return torch.where(hidden, 0.0, torch.where(apart.isfinite() & (apart.abs() < -HIDDEN), apart, torch.nan))


def summary(shown: Sequence[Band]) -> list[str]:
    """Return the picture in words, a line for each band, for readers who cannot see it."""
    return [f"{band.title}: {_in_words(band)}" for band in shown]


def _in_words(band: Band) -> str:
    last = band.panels[-1]
    if last.kind != "difference":
        return f"{len(band.panels)} head{'' if len(band.panels) == 1 else 's'}"
    if last.values is None:
        return next((panel.note for panel in band.panels if panel.note), "nothing to compare")
    one_sided = int(last.values.isnan().sum())
    if one_sided:
        return f"{one_sided} of {last.values.numel()} numbers are hidden in one of the two only"
    if is_none(last.values):
        return "as expected"
    if band.panels[0].kind == "mask":
        return f"{int(last.values.count_nonzero())} of {last.values.numel()} differ"
    return f"the largest difference is {float(last.values.abs().max()):.2g}"
