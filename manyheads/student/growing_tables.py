"""Find the attention tables of a sequence of calls, which grow to the right, and those that are computed in tiles."""

from __future__ import annotations

import torch
from torch import Tensor

from ..box.worker.answers import Traced
from ..box.worker.messages import Returned
from ..course.shapes import Axis
from .example import Example, by_name
from .heads import Heads, heads_at, heads_of

# The attention tables of a sequence of calls of one module, which grow to the right: new queries × all keys so far.

_TOKENS = Axis(("T",))


def sides_of(example: Example) -> list[tuple[int, int]]:
    """Return (new queries, all keys so far) of each call; empty if the signature does not say which argument holds the tokens."""
    named = example.signature.call if example.signature else ()
    shapes = {p.name: p.shape for p in named if p.shape and _TOKENS in p.shape}
    sides: list[tuple[int, int]] = []
    for step in example.call.steps:
        given = by_name(example.names, step.args, step.kwargs)
        new = next(
            (v.shape[shapes[k].index(_TOKENS)] for k, v in given.items() if k in shapes and isinstance(v, Tensor)), 0
        )
        if not new:
            return []
        past = max((sides[value.step][1] for value in given.values() if isinstance(value, Returned)), default=0)
        sides.append((new, past + new))
    return sides


def chunks_of(example: Example) -> tuple[int, ...]:
    """Return how little the calls of a sequence show: lower is better; empty if it is a single call.

    One of the later calls should have several new tokens, whose first ones must not see the last: a triangle at the lower
    right. And of all calls the table should be one that can be found.
    """
    sides = sides_of(example)
    if len(sides) < 2:
        return ()
    triangle = any(1 < new < keys for new, keys in sides)
    return int(not triangle), sum(not _can_be_found(example, keys) for _, keys in sides)


def _can_be_found(example: Example, keys: int) -> bool:
    """Return whether tables tell weights apart: not for a single key, whose weight is 1, nor if a head has as many channels as keys."""
    return keys > 1 and keys != example.axes.sizes.get("hd")


def heads_by_call(example: Example, traced: Traced) -> list[tuple[Example, Heads | None]]:
    """Return the first output of each call, with the weights and scores that the call computed; None where none were found."""
    if not example.call.then:
        return [(example, heads_of(traced, example.axes))]
    outputs = {part.place // example.call.form.count: part for part in reversed(example.every)}
    sides = sides_of(example)
    return [
        (outputs[number], _heads(example, traced, sides, number)) for number in range(len(sides)) if number in outputs
    ]


def _heads(example: Example, traced: Traced, sides: list[tuple[int, int]], number: int) -> Heads | None:
    """Return the heads of one call. Who keeps the tokens in place of keys may compute all rows again: the last ones are new."""
    new, keys = sides[number]
    if not _can_be_found(example, keys):
        return None
    heads = heads_at(traced, example.axes, (new, keys), sides[:number].count((new, keys)))
    if heads is not None or (keys, keys) in sides:
        return heads
    whole = heads_at(traced, example.axes, (keys, keys), sum(k == keys for _, k in sides[:number]))
    if whole is None:
        return None
    return Heads(whole.weights[:, -new:], None if whole.scores is None else whole.scores[:, -new:])


# The scores of a call that is computed in tiles, and how much its tiles show.


def products_of(example: Example) -> Tensor | None:
    """Return each query times each key, (T, T), of the first head of the first sequence."""
    if example.tiled is None:
        return None
    q, k = (example.arguments.get(name) for name in (example.tiled.queries, example.tiled.keys))
    if not isinstance(q, Tensor) or not isinstance(k, Tensor):
        return None
    one, other = (first_table(side).float().double() for side in (q, k))
    return one @ other.mT


def first_table(values: Tensor) -> Tensor:
    """Its last two axes, at index 0 of the others."""
    while values.dim() > 2:
        values = values[0]
    return values


def grid_of(example: Example) -> tuple[int, ...]:
    """Return how little the tiles of this call show: lower is better; empty if it has none.

    The last tile of a row and of a column should be smaller than the others, and one should be all future. Then few tiles are
    better, and of those with as many, ones that often bring a query a larger score.
    """
    products = products_of(example)
    if products is None or example.tiled is None:
        return ()
    rows, columns = (example.arguments.get(name) for name in (example.tiled.rows, example.tiled.columns))
    if not isinstance(rows, int) or not isinstance(columns, int) or min(rows, columns) < 1:
        return 1, 0, 0
    queries, keys = products.shape
    ragged = queries % rows != 0 and keys % columns != 0
    future = (keys - 1) // columns * columns >= rows
    highest = torch.stack([part.amax(-1) for part in products.split(columns, dim=-1)]).cummax(0).values
    rises = int((highest[1:] > highest[:-1]).sum())
    return int(not (ragged and future)), -(-queries // rows) * -(-keys // columns), -rises
