"""The tiles of a traced call as bands: in which order they are visited, and what is carried from one to the next.

Another order than the reference's is as good, and so is another number than the running maximum that scores are held against.
So only what decides the answer is called a difference: which scores count, and, where that number is a maximum, which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..box.worker.answers import Traced
from .bands import APART, Band, Frame, Panel, compared, difference
from .example import Example
from .follow import is_right
from .heads import Tiles
from .tiles import Visit, Visits, are_among, visits_of
from .windows import Box

_UNSEEN = "the tiles of your code cannot be followed here; course trace shows its lines"
_OTHER = "yours holds its scores against other numbers: as good as a maximum, if every tile is mended by them"
_NO_SHARES = "what your tiles hold their scores against cannot be seen"
_CARRIED = "query position", "after tile"


def tile_bands(example: Example, traced: Traced) -> list[Band]:
    """Return the bands of this call; empty if nothing is recorded of it to compare with."""
    if example.tiles is None:
        return []
    visits, right = visits_of(example, traced), is_right(example, traced.reply)
    wanted = [Box(*row) for row in example.tiles.boxes.int().tolist()]
    seen = torch.isfinite(example.tiles.scores)
    title = f"tiles in {example.target}, head 0, in the order of the visits"
    expected = _order("expected", wanted, [box.of(seen) for box in wanted], seen.shape)
    # Of a right answer, and where not all is kept, it is not the student who misses a score.
    if visits is None or ((right or visits.cut) and not torch.equal(visits.counts, seen)):
        panels = expected, Panel("yours", None, note=_UNSEEN), Panel(APART, None, "difference")
        return [Band(title, panels, "query position", "key position")]
    boxes = [visit.box for visit in visits.visits]
    apart = difference(visits.counts, seen)
    yours = _order("yours", boxes, [visit.counts for visit in visits.visits], seen.shape)
    panels = expected, yours, Panel(f"counts: {APART}", apart, "difference")
    words = _in_words(boxes, wanted, apart, _too_large(example, boxes))
    if traced.reply.raised is not None:
        panels = *panels[:2], Panel(APART, None, "difference")
        words = f"{_count(boxes)}, then your code stopped"
    return [Band(title, panels, "query position", "key position", words=words), *_carried(visits, example.tiles, right)]


def _order(title: str, boxes: Sequence[Box], counts: Sequence[Tensor], shape: Sequence[int]) -> Panel:
    """Return the number of the first tile in which each score counts, and a frame around each tile."""
    table = torch.full(tuple(shape), -math.inf)
    for number, (box, these) in enumerate(zip(boxes, counts, strict=True), 1):
        cells = box.of(table)
        cells[these & cells.isinf()] = number
    frames = tuple(Frame(*box, str(number)) for number, box in enumerate(boxes, 1))
    return Panel(title, table, frames=frames, grey="does not count")


def _in_words(boxes: Sequence[Box], wanted: Sequence[Box], apart: Tensor, large: str) -> str:
    """Return how many tiles there are, and which scores count wrongly. large: what is said of tiles that are too large."""
    too_many, too_few = int((apart > 0).sum()), int((apart < 0).sum())
    told = [f"{too_many} of the scores count that should not"] * bool(too_many)
    told += [f"{too_few} of the scores that should count do not"] * bool(too_few)
    same = list(boxes) == list(wanted)
    other = large or ("" if told or same else ", other than the reference's, which is as good")
    return f"{_count(boxes)}{other}; " + (", ".join(told) or "what counts is as expected")


def _too_large(example: Example, boxes: Sequence[Box]) -> str:
    """Say that tiles have more rows or columns than they were asked to; "" where none have."""
    assert example.tiled is not None
    rows, columns = (example.arguments.get(name) for name in (example.tiled.rows, example.tiled.columns))
    if not isinstance(rows, int) or not isinstance(columns, int):
        return ""
    large = sum(box.height > rows or box.width > columns for box in boxes)
    return f", {large} of them larger than {rows} × {columns}" if large else ""


def _count(boxes: Sequence[Box]) -> str:
    return "1 tile" if len(boxes) == 1 else f"{len(boxes)} tiles"


def _carried(visits: Visits, recorded: Tiles, right: bool) -> list[Band]:
    """Return the running maximum and the running sum of one block of queries: the first that differs, or the one that rises most."""
    blocks = [
        [_maximum(visits, recorded, fromkey, right), *_sum(visits, recorded, fromkey, right)]
        for fromkey in dict.fromkeys(visit.block for visit in visits.visits)
    ]
    return next((block for block in blocks if any(band.differs for band in block)), max(blocks, key=_rises))


def _rises(block: Sequence[Band]) -> int:
    wanted = block[0].panels[0].values
    return 0 if wanted is None else int((wanted[:, 1:] > wanted[:, :-1]).sum())


def _maximum(found: Visits, recorded: Tiles, block: tuple[int, int], right: bool) -> Band:
    """Return what the tiles of these queries hold their scores against, beside the largest score so far."""
    numbers, visits = _of_block(found, block)
    wanted = torch.stack([_largest(recorded, visits[: i + 1]) for i in range(len(visits))], -1)
    own = _references(visits)
    title = f"running maximum of {_queries(visits[-1].box)}"
    maxima = all(
        are_among(each.reference, found.scores, [v.box for v in visits[: i + 1]])
        for i, each in enumerate(visits)
        if each.reference is not None
    )
    band = _labelled(title, wanted, own if own is not None else wanted, numbers, visits[-1].box)
    if own is not None and maxima and not (right and band.differs):
        return band
    note = _NO_SHARES if own is None else _OTHER
    panels = band.panels[0], Panel("yours", None, note=note), Panel(APART, None, "difference")
    return replace(band, panels=panels)


def _sum(found: Visits, recorded: Tiles, block: tuple[int, int], right: bool) -> list[Band]:
    """Return the carried sums of these queries beside those that are mended; empty if none are seen, or are kept in another way."""
    numbers, visits = _of_block(found, block)
    totals = [visit.total for visit in visits if visit.total is not None]
    if len(totals) < len(visits):
        return []
    wanted = torch.stack([_summed(recorded, visits[: i + 1]) for i in range(len(visits))], -1)
    title = f"running sum of {_queries(visits[-1].box)}"
    band = _labelled(title, wanted, torch.stack(totals, -1), numbers, visits[-1].box)
    return [] if right and band.differs else [replace(band, beside=True)]


def _labelled(title: str, wanted: Tensor, own: Tensor, numbers: Sequence[int], box: Box) -> Band:
    band = compared(title, wanted, own, "numbers", *_CARRIED)
    queries = tuple(str(row) for row in range(box.top, box.top + box.height))
    return replace(band, row_labels=queries, column_labels=tuple(map(str, numbers)))


def _of_block(visits: Visits, block: tuple[int, int]) -> tuple[list[int], list[Visit]]:
    """Return the tiles of these queries, with their numbers in the order of all visits; those that have shares, if any do."""
    every = [(number, visit) for number, visit in enumerate(visits.visits, 1) if visit.block == block]
    numbered = [(number, visit) for number, visit in every if visit.reference is not None] or every
    return [number for number, _ in numbered], [visit for _, visit in numbered]


def _queries(box: Box) -> str:
    last = box.top + box.height - 1
    return f"query {last}" if box.height == 1 else f"queries {box.top} to {last}"


def _seen(recorded: Tiles, visits: Sequence[Visit]) -> Tensor:
    """Return (height, T): the scores that should count in these tiles, −∞ elsewhere."""
    box = visits[-1].box
    scores = torch.full((box.height, recorded.scores.shape[1]), -math.inf, dtype=torch.float64)
    for visit in visits:
        columns = slice(visit.box.left, visit.box.left + visit.box.width)
        scores[:, columns] = recorded.scores[box.top : box.top + box.height, columns].double()
    return scores


def _largest(recorded: Tiles, visits: Sequence[Visit]) -> Tensor:
    return _seen(recorded, visits).amax(-1)


def _summed(recorded: Tiles, visits: Sequence[Visit]) -> Tensor:
    scores = _seen(recorded, visits)
    return (scores - scores.amax(-1, keepdim=True)).exp().nan_to_num(0.0).sum(-1)


def _references(visits: Sequence[Visit]) -> Tensor | None:
    """Return what each tile holds its scores against; a tile that hides a row leaves it as it was. None where it cannot be seen."""
    shown: list[Tensor] = []
    for visit in visits:
        if visit.reference is None:
            return None
        before = shown[-1] if shown else torch.full_like(visit.reference, -math.inf)
        shown.append(torch.where(visit.reference.isnan(), before, visit.reference))
    return torch.stack(shown, -1)


# The tiles that a traced call visited, in words, for `course trace`.


def tile_lines(example: Example, traced: Traced) -> Iterator[str]:
    """Yield a line for each tile, with the running maximum of its last query; none where not all tiles could be followed."""
    visits = visits_of(example, traced)
    if visits is None or visits.cut or len(visits.visits) < 2:
        return
    keys = [_span("key", visit.box.left, visit.box.width) for visit in visits.visits]
    queries = [_span("query", visit.box.top, visit.box.height) for visit in visits.visits]
    wide, widest = max(map(len, queries)), max(map(len, keys))
    for number, visit in enumerate(visits.visits, 1):
        where = f"{queries[number - 1]:<{wide}}  {keys[number - 1]:<{widest}}"
        yield f"tile {number:>{len(str(len(keys)))}}  {where}  {_maximum_words(visits, visit, number)}".rstrip()


def _span(what: str, first: int, count: int) -> str:
    several = {"query": "queries", "key": "keys"}[what]
    return f"{what} {first}" if count == 1 else f"{several} {first}–{first + count - 1}"


def _maximum_words(visits: Visits, visit: Visit, number: int) -> str:
    last = visit.box.top + visit.box.height - 1
    if visit.reference is None:
        return ""
    value = float(visit.reference[-1])
    if value != value:
        return f"nothing counts for query {last}"
    boxes: Sequence[Box] = [other.box for other in visits.visits[:number]]
    what = "maximum so far" if are_among(visit.reference, visits.scores, boxes) else "held against"
    return f"query {last}: {what} {value:.2f}".replace("-", "−")
