"""Show where each number of an output came from, which makes a wrong view visible.

This works for functions that move numbers without changing them: the recorded output contains each number of the input
once. As in the lesson, an address is 10000·batch + 100·token + channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .example import Example

BLOCKS, ROWS, COLUMNS = 2, 12, 16  # the most that is shown
_WORDS = {"T": "token", "nh": "head"}


@dataclass(frozen=True)
class Addresses:
    """Where each number of a tensor stood in the argument, and in which head; −1 if the argument has no such number."""

    argument: str
    places: Tensor
    heads: Tensor

    def at(self, table: int) -> Addresses:
        """Return those of one table."""
        places, heads = (each.reshape(-1, *each.shape[-2:])[table] for each in (self.places, self.heads))
        return Addresses(self.argument, places, heads)


def addresses(example: Example, values: Tensor) -> Addresses | None:
    """Return the addresses of the numbers of an answer; None if the call does more than move numbers."""
    tensors = [(name, value) for name, value in example.arguments.items() if isinstance(value, Tensor)]
    if len(tensors) != 1 or example.signature is None or values.dim() < 2:
        return None
    argument, given = tensors[0]
    ordered = given.flatten().float().sort()
    moves = torch.equal(example.expected.flatten().float().sort().values, ordered.values)
    if not moves or len(ordered.values.unique()) != given.numel():
        return None
    shape = next(p.shape for p in example.signature.call if p.name == argument) or ()
    names = [str(axis.factors[0]) for axis in shape]
    row = "T" if "T" in names else next(name for name in names if name != "B")
    places, channels = (torch.zeros(given.shape, dtype=torch.long) for _ in range(2))
    of_others = of_heads = 1
    for axis, (name, size) in reversed([*enumerate(zip(names, given.shape, strict=True))]):
        at = torch.arange(size).reshape(-1, *[1] * (given.dim() - axis - 1))
        places = places + at * {"B": 10_000, row: 100}.get(name, of_others)
        of_others *= 1 if name in ("B", row) else size
        if name not in ("B", "T"):
            channels, of_heads = channels + at * of_heads, of_heads * size
    heads = channels // (of_heads // example.axes.sizes.get("nh", 1))
    asked = values.flatten().float()
    at = torch.searchsorted(ordered.values, asked).clamp(max=given.numel() - 1)
    is_there = ordered.values[at] == asked
    found = (torch.where(is_there, each.flatten()[ordered.indices[at]], -1) for each in (places, heads))
    return Addresses(argument, *(each.reshape(values.shape) for each in found))


@dataclass(frozen=True)
class OriginCell:
    """A number's address, its token, and whether it is the expected number. address None: the input has no such number."""

    address: int | None
    token: int
    right: bool


@dataclass(frozen=True)
class OriginBlock:
    """A table of cells, the student's and the expected ones: a head, or a whole sequence."""

    title: str
    rows: tuple[str, ...]
    yours: tuple[tuple[OriginCell, ...], ...]
    right: tuple[tuple[OriginCell, ...], ...]


@dataclass(frozen=True)
class OriginPicture:
    """The first sequence of an output. `more`: how many heads are not shown."""

    argument: str
    blocks: tuple[OriginBlock, ...]
    more: int
    is_right: bool


def origins(example: Example, found: Tensor) -> OriginPicture | None:
    """Return the picture of an answer of the right shape; None if the call does more than move numbers."""
    mine, wanted = addresses(example, found), addresses(example, example.expected)
    if mine is None or wanted is None or example.signature is None or found.dim() not in (3, 4):
        return None
    yours, right = (each.places[0].reshape(-1, *found.shape[-2:])[:BLOCKS, :ROWS, :COLUMNS] for each in (mine, wanted))
    names = [_WORDS.get(str(axis.factors[0]), str(axis.factors[0])) for axis in example.signature.returns]
    rows = tuple(f"{names[-2]} {i}" for i in range(yours.shape[1]))
    titles = [f"{names[1]} {i}" for i in range(len(yours))] if len(names) == 4 else [""]
    blocks = tuple(
        OriginBlock(title, rows, _cells(own, asked), _cells(asked, asked))
        for title, own, asked in zip(titles, yours.tolist(), right.tolist(), strict=True)
    )
    more = example.expected.shape[1] - len(blocks) if len(names) == 4 else 0
    return OriginPicture(mine.argument, blocks, more, torch.equal(mine.places, wanted.places))


def _cells(yours: list[list[int]], right: list[list[int]]) -> tuple[tuple[OriginCell, ...], ...]:
    def cell(place: int, wanted: int) -> OriginCell:
        return OriginCell(None if place < 0 else place, place % 10_000 // 100 if place >= 0 else -1, place == wanted)

    return tuple(tuple(map(cell, *rows)) for rows in zip(yours, right, strict=True))
