"""The scores of a call that is computed in tiles, and how much its tiles show."""

from __future__ import annotations

import torch
from torch import Tensor

from .example import Example


def products_of(example: Example) -> Tensor | None:
    """Each query times each key, of the first head of the first sequence. (T, T)"""
    if example.tiled is None:
        return None
    q, k = (example.arguments.get(name) for name in (example.tiled.queries, example.tiled.keys))
    if not isinstance(q, Tensor) or not isinstance(k, Tensor):
        return None
    one, other = (first_table(each).float().double() for each in (q, k))
    return one @ other.mT


def first_table(values: Tensor) -> Tensor:
    """Its last two axes, at index 0 of the others."""
    while values.dim() > 2:
        values = values[0]
    return values


def grid_of(example: Example) -> tuple[int, ...]:
    """How little the tiles of this call show: lower is better; empty if it has none.

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
