"""Find the tiles in which a traced call computed its scores, in the order in which it visited them.

Nothing is recognised by a name. A tile is a table that is a window of all products of queries with keys, whatever it was
multiplied by, before or after. Its shares are a later table of its size: exp(score − reference), with one reference for each
query. So which scores count, and what each tile is held against, follow from the shares, however a maximum was kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from torch import Tensor

from ..box.worker.answers import Step, Traced
from .example import Example
from .growing_tables import first_table, products_of
from .windows import Box, Fit, Place, fit, is_seen, place

# Find the running sum that a student's code carries from tile to tile.

_LEAST = 2  # tiles after which it must be seen, so that nothing is taken for it by chance
Site = TypeVar("Site", bound=Hashable)
Sums = Sequence[tuple[Hashable, Tensor | None]]


def carried(vectors: Sequence[Mapping[Site, Tensor]], sums: Sums) -> list[Tensor] | None:
    """Return the carried sums after each tile; None if there are none.

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
            found.append(((_keeps(series, sums), all(tensor is not None for tensor in given)), series))
    return max(reversed(found), key=lambda each: each[0])[1] if found else None


def _series(given: Sequence[Tensor | None], sums: Sums) -> list[Tensor] | None:
    """Return the sums after each tile; None if these are none.

    The sums of a block's first tile may be carried as they are, so that no operation is seen there.
    """
    if sum(tensor is not None for tensor in given) < min(_LEAST, len(given)):
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
    """Return whether some part of the past is kept anywhere."""
    return any(
        alone is not None and bool((total - alone > _rounding(total)).any())
        for total, (_, alone) in zip(series, sums, strict=True)
    )


def _rounding(total: Tensor) -> Tensor:
    return _ALIKE * (1 + total.abs())


_ALIKE = 1e-3
_TINY = -80.0  # the exponential of less is zero in float32
_Site = tuple[str, tuple[int, ...], tuple[int, ...]]  # an operation, by its place in the student's code


@dataclass(frozen=True)
class Visit:
    """A tile. counts: which of its scores count. reference: what they are held against, for each query; NaN where none counts.

    sums: of the shares, for each query. total: a tensor of the student's that carries these sums from tile to tile.
    """

    box: Box
    counts: Tensor
    reference: Tensor | None = None
    sums: Tensor | None = None
    total: Tensor | None = None

    @property
    def block(self) -> tuple[int, int]:
        """Its queries: the first, and how many."""
        return self.box.top, self.box.height


@dataclass(frozen=True)
class Visits:
    """The visited tiles of the first head. scores: (T, T), of all queries and keys, also those that do not count.

    cut: whether there were more operations than are kept.
    """

    visits: tuple[Visit, ...]
    scores: Tensor
    cut: bool = False

    @property
    def counts(self) -> Tensor:
        """(T, T): which scores count in some tile."""
        seen = torch.zeros_like(self.scores, dtype=torch.bool)
        for visit in self.visits:
            visit.box.of(seen).logical_or_(visit.counts)
        return seen


@dataclass
class _Tile:
    """A tile, and all tables and vectors that were computed before the next one."""

    place: Place
    upright: bool  # whether its rows are queries
    last: Tensor  # as it came: with what is hidden, once that is done, and with padding
    whole: tuple[int, ...]  # the shape of the tensor that it is from
    tables: list[tuple[_Site, Tensor]] = field(default_factory=list)
    vectors: dict[_Site, Tensor] = field(default_factory=dict)
    masked: bool = False  # whether anything else of its size was computed since, so that what is hidden stands fast

    @property
    def box(self) -> Box:
        return self.place.box

    def is_again(self, site: _Site, step: Step, table: Tensor) -> bool:
        """Return whether the step gives the same scores, with more of them hidden, or all; what has run here makes another tile."""
        if any(site == each for each, _ in self.tables):
            return False
        same = step.outputs[0].shape == self.whole and any(each.shape == self.whole for each in step.inputs)
        if not same or table.shape != self.last.shape or bool(table.isnan().any()):
            return False
        seen = is_seen(table)  # a column of −∞ may later be a maximum that has seen nothing yet
        return torch.allclose(table[seen], self.last[seen]) and (bool(seen.any()) or not self.masked)

    def last_of(self, site: _Site) -> Tensor | None:
        """Return the last table that this operation made, if it made any."""
        return next((table for each, table in reversed(self.tables) if each == site), None)

    def shares(self, table: Tensor) -> Tensor:
        """Return a table of the tile's shares, zero where its score is hidden."""
        return torch.where(is_seen(self.inside(self.last)), table, 0.0)

    def inside(self, table: Tensor) -> Tensor:
        """Return the tile's cells of a table of its size, without padding; rows are queries."""
        return (table if self.upright else table.mT)[: self.box.height, : self.box.width].double()

    def note(self, site: _Site, crop: Tensor, table: Tensor) -> None:
        """Add a table of the tile's size, or a vector with a number for each of its queries."""
        if table.shape == self.last.shape:
            self.tables.append((site, self.inside(table)))
            self.masked |= table is not self.last
        queries = self.last.shape[0 if self.upright else 1]
        while crop.numel() > queries and crop.dim():
            crop = crop[0]
        if crop.numel() == queries:
            self.vectors[site] = crop.flatten()[: self.box.height].double()


def visits_of(example: Example, traced: Traced) -> Visits | None:
    """Return the tiles that the call visited; None if none were found."""
    products = products_of(example)
    if products is None:
        return None
    tiles, cut = _tiles(traced, products)
    if not tiles:
        return None
    site, scale = _shares(tiles, products)
    visits = [_visit(tile, site, products, scale) for tile in tiles]
    totals = carried([tile.vectors for tile in tiles], [(visit.block, visit.sums) for visit in visits])
    if totals is not None:
        visits = [replace(visit, total=total) for visit, total in zip(visits, totals, strict=True)]
    return Visits(tuple(visits), products * scale, cut)


def _runs(traced: Traced) -> Iterator[tuple[Step, Tensor | None]]:
    """Yield every run of every step, in order, with what is kept of its output."""
    runs: dict[int, int] = defaultdict(int)
    for at in traced.order:
        step, run = traced.steps[at], runs[at]
        runs[at] += 1
        yield step, step.crops[run] if run < len(step.crops) else None


def _tiles(traced: Traced, products: Tensor) -> tuple[list[_Tile], bool]:
    """Return the tiles, and whether runs of a step that made some of them are not kept."""
    tiles: list[_Tile] = []
    factors: dict[_Site, float] = {}  # of what makes tiles
    lost: set[_Site] = set()
    current: _Tile | None = None
    for step, crop in _runs(traced):
        site = step.name, step.lines, step.sites
        if crop is None:
            lost.add(site)
        if crop is None or not crop.is_floating_point() or crop.dim() == 0:
            continue
        table = first_table(crop)
        if current is None or not current.is_again(site, step, table):
            tile = _new_tile(step, table, products, factors, site, tiles)
            if tile is not None and (current is None or current.box != tile.box):
                current = tile
                tiles.append(tile)
            elif tile is not None and current is not None:
                current.place, current.last = tile.place, table
            elif site in factors:  # a tile of which nothing can be seen
                current = None
        else:
            current.last = table
        if current is not None:
            current.note(site, crop, table)
    return tiles, bool(factors.keys() & lost)


def _new_tile(
    step: Step, table: Tensor, products: Tensor, factors: dict[_Site, float], site: _Site, tiles: Sequence[_Tile]
) -> _Tile | None:
    """Return the tile that a table is, whose factor is noted for its site; None if it is none, or the maxima of one."""
    tile = _placed(step, table, products, factors.get(site)) if table.dim() == 2 else None
    if tile is None or _is_maximum(tile.box, tiles):
        return None
    factors[site] = tile.place.factor
    return tile


def _is_maximum(box: Box, tiles: Sequence[_Tile]) -> bool:
    """Return whether it is one score of each query of an earlier tile: their maxima, if all stand in one column."""
    rows = (tile.box for tile in tiles if tile.box[0::2] == box[0::2] and tile.box.width > 1)
    return box.width == 1 and any(row.left <= box.left < row.left + row.width for row in rows)


def _placed(step: Step, table: Tensor, products: Tensor, factor: float | None) -> _Tile | None:
    for upright in (True, False):
        found = place(table if upright else table.mT, products, factor)
        if found is not None:
            return _Tile(found, upright, table, step.outputs[0].shape)
    return None


def _shares(tiles: Sequence[_Tile], products: Tensor) -> tuple[_Site | None, float]:
    """Return the operation that makes the shares of each tile, and by what products are scaled in them.

    Of several, one whose references are scores of their rows comes first: a maximum; then one that does so in more tiles; then
    the last.
    """
    scales: dict[_Site, float] = {}
    for tile in tiles:
        for site, table in tile.tables:
            fitted = None if site in scales else fit(tile.shares(table), tile.box.of(products))
            if fitted is not None:
                scales[site] = fitted.scale

    def rank(site: _Site) -> tuple[bool, int, int]:
        tables = [(i, tile.shares(table)) for i, tile in enumerate(tiles) if (table := tile.last_of(site)) is not None]
        fits = [(i, fit(table, tiles[i].box.of(products), scales[site])) for i, table in tables]
        known = [(i, fitted) for i, fitted in fits if fitted is not None]
        empty = sum(not bool(table.any()) for _, table in tables)
        return _are_maxima(known, tiles, products), len(known) + empty, order.index(site)

    order = [site for tile in tiles for site, _ in tile.tables]
    if not scales:
        return None, tiles[0].place.factor
    best = max(scales, key=rank)
    return best, scales[best]


def _are_maxima(found: Sequence[tuple[int, Fit]], tiles: Sequence[_Tile], products: Tensor) -> bool:
    """Return whether all references are scores that their query saw, in this tile or before."""
    boxes = [tile.box for tile in tiles]
    return all(are_among(each.reference, products * each.scale, boxes[: i + 1]) for i, each in found)


def are_among(reference: Tensor, scores: Tensor, boxes: Sequence[Box]) -> bool:
    """Return whether each number, one for each query of the last tile, is one of its scores in these tiles. NaN is left out."""
    for row, number in enumerate(reference.tolist(), boxes[-1].top):
        seen = [scores[row, b.left : b.left + b.width] for b in boxes if b.top <= row < b.top + b.height]
        if number == number and not bool(((torch.cat(seen) - number).abs() < _ALIKE).any()):
            return False
    return True


def _visit(tile: _Tile, site: _Site | None, products: Tensor, scale: float) -> Visit:
    table, seen = None if site is None else tile.last_of(site), is_seen(tile.inside(tile.last))
    if table is None:  # where others have shares, this one is computed for something else
        return Visit(tile.box, seen & (site is None))
    shares, scores = tile.shares(table), scale * tile.box.of(products)
    fitted = fit(shares, tile.box.of(products), scale)
    if fitted is None and bool(shares.any()):
        return Visit(tile.box, seen)
    sums = shares.sum(-1)
    reference = torch.full_like(sums, torch.nan) if fitted is None else fitted.reference
    tiny = seen & (scores - reference[:, None] < _TINY)
    return Visit(tile.box, (shares > 0) | tiny, reference, sums)
