"""The tiles that a traced call visited, in words, for `course trace`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..box.worker.answers import Traced
from .example import Example
from .tiles import Visit, Visits, are_among, visits_of
from .windows import Box


def tile_lines(example: Example, traced: Traced) -> Iterator[str]:
    """A line for each tile, with the running maximum of its last query; none where not all tiles could be followed."""
    found = visits_of(example, traced)
    if found is None or found.cut or len(found.visits) < 2:
        return
    keys = [_span("key", visit.box.left, visit.box.width) for visit in found.visits]
    queries = [_span("query", visit.box.top, visit.box.height) for visit in found.visits]
    wide, widest = max(map(len, queries)), max(map(len, keys))
    for number, visit in enumerate(found.visits, 1):
        where = f"{queries[number - 1]:<{wide}}  {keys[number - 1]:<{widest}}"
        yield f"tile {number:>{len(str(len(keys)))}}  {where}  {_maximum(found, visit, number)}".rstrip()


def _span(what: str, first: int, count: int) -> str:
    several = {"query": "queries", "key": "keys"}[what]
    return f"{what} {first}" if count == 1 else f"{several} {first}–{first + count - 1}"


def _maximum(found: Visits, visit: Visit, number: int) -> str:
    last = visit.box.top + visit.box.height - 1
    if visit.reference is None:
        return ""
    value = float(visit.reference[-1])
    if value != value:
        return f"nothing counts for query {last}"
    boxes: Sequence[Box] = [each.box for each in found.visits[:number]]
    what = "maximum so far" if are_among(visit.reference, found.scores, boxes) else "held against"
    return f"query {last}: {what} {value:.2f}".replace("-", "−")
