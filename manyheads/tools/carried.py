"""Find the running sum that a student's code carries from tile to tile."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

_ALIKE = 1e-3
_LEAST = 2  # tiles after which it must be seen, so that nothing is taken for it by chance
Site = TypeVar("Site", bound=Hashable)
Sums = Sequence[tuple[Hashable, Tensor | None]]


def carried(vectors: Sequence[Mapping[Site, Tensor]], sums: Sums) -> list[Tensor] | None:
    """The carried sums after each tile; None if there are none.

    They are what one operation gives after each tile: the sums of its shares, and some part of what it gave before. One that
    keeps a part comes first, for the others are the sums of each tile alone; then one that is seen after all tiles.

    Args:
        vectors: what operations gave between a tile and the next, with a number for each of its queries.
        sums: of each tile's shares, with what its block of queries is known by.
    """
    found: list[tuple[tuple[bool, bool], list[Tensor]]] = []
    for site in vectors[-1]:
        given = [known.get(site) for known in vectors]
        if (series := _series(given, sums)) is not None:
            found.append(((_keeps(series, sums), all(each is not None for each in given)), series))
    return max(reversed(found), key=lambda each: each[0])[1] if found else None


def _series(given: Sequence[Tensor | None], sums: Sums) -> list[Tensor] | None:
    """The sums after each tile; None if these are none.

    The sums of a block's first tile may be carried as they are, so that no operation is seen there.
    """
    if sum(each is not None for each in given) < min(_LEAST, len(given)):
        return None
    past: dict[Hashable, Tensor] = {}
    series = []
    for found, (block, alone) in zip(given, sums, strict=True):
        total = alone if found is None and block not in past else found
        if alone is None or total is None or total.shape != alone.shape or bool(total.isnan().any()):
            return None
        before, more, rounding = past.get(block, torch.zeros_like(total)), total - alone, _rounding(total)
        if bool((more < -rounding).any() or ((before == 0) & (more > rounding)).any()):
            return None
        past[block] = total
        series.append(total)
    return series


def _keeps(series: Sequence[Tensor], sums: Sums) -> bool:
    """Whether some part of the past is kept anywhere."""
    return any(
        alone is not None and bool((total - alone > _rounding(total)).any())
        for total, (_, alone) in zip(series, sums, strict=True)
    )


def _rounding(total: Tensor) -> Tensor:
    return _ALIKE * (1 + total.abs())
