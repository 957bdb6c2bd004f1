"""Find the running sum that a student's code carries from tile to tile."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

_ALIKE = 1e-3
Site = TypeVar("Site", bound=Hashable)


def carried(vectors: Sequence[Mapping[Site, Tensor]], sums: Sequence[tuple[int, Tensor | None]]) -> list[Tensor] | None:
    """The carried sums after each tile; None if there are none.

    They are what one operation gives after each tile: the sums of its shares, and some part of what it gave before. One that
    keeps a part comes first, for the others are the sums of each tile alone; then the last.

    Args:
        vectors: what operations gave between a tile and the next, with a number for each of its queries.
        sums: of each tile's shares, with its first query.
    """
    found = [
        each for site in vectors[-1] if (each := _series([known.get(site) for known in vectors], sums)) is not None
    ]
    return max(reversed(found), key=lambda each: each[0])[1] if found else None


def _series(
    totals: Sequence[Tensor | None], sums: Sequence[tuple[int, Tensor | None]]
) -> tuple[bool, list[Tensor]] | None:
    """Whether these keep some part of their past, and the sums after each tile; None if they are no carried sum.

    After the first tile of a row of tiles, the sums of its shares may be carried as they are.
    """
    past: dict[int, Tensor] = {}
    keeps, series = False, []
    for found, (top, alone) in zip(totals, sums, strict=True):
        total = alone if found is None and top not in past else found
        if alone is None or total is None or total.shape != alone.shape or bool(total.isnan().any()):
            return None
        before, more = past.get(top, torch.zeros_like(total)), total - alone
        rounding = _ALIKE * (1 + total.abs())
        if bool((more < -rounding).any() or ((before == 0) & (more > rounding)).any()):
            return None
        keeps |= bool((more > rounding).any())
        past[top] = total
        series.append(total)
    return keeps, series
