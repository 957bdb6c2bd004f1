"""Show where each number of an output came from, which makes a wrong view visible.

This works for functions that move numbers without changing them: the recorded output contains each
number of the input once. As in the lesson, an address is 10000·batch + 100·token + channel.
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
    """Where each number of a tensor stood in the argument, and in which head; −1 if the argument
    has no such number.
    """

    argument: str
    places: Tensor
    heads: Tensor

    def at(self, table: int) -> Addresses:
        """Return those of one table."""
        places, heads = (
            grid.reshape(-1, *grid.shape[-2:])[table] for grid in (self.places, self.heads)
        )
        return Addresses(self.argument, places, heads)


def addresses(example: Example, values: Tensor) -> Addresses | None:
    """Return the addresses of the numbers of an answer; None if the call does more than move
    numbers.
    """
    tensors = [
        (name, value) for name, value in example.arguments.items() if isinstance(value, Tensor)
    ]
    if len(tensors) != 1 or example.signature is None or values.dim() < 2:
        return None
    argument, tensor = tensors[0]
    ordered = tensor.flatten().float().sort()
    moves = torch.equal(example.expected.flatten().float().sort().values, ordered.values)
    if not moves or len(ordered.values.unique()) != tensor.numel():
        return None
    shape = next(p.shape for p in example.signature.call if p.name == argument) or ()
    names = [str(axis.factors[0]) for axis in shape]
    row = "T" if "T" in names else next(name for name in names if name != "B")
    places, channels = (torch.zeros(tensor.shape, dtype=torch.long) for _ in range(2))
    of_others = of_heads = 1
    for axis, (name, size) in reversed([*enumerate(zip(names, tensor.shape, strict=True))]):
        at = torch.arange(size).reshape(-1, *[1] * (tensor.dim() - axis - 1))
        places = places + at * {"B": 10_000, row: 100}.get(name, of_others)
        of_others *= 1 if name in ("B", row) else size
        if name not in ("B", "T"):
            channels, of_heads = channels + at * of_heads, of_heads * size
    heads = channels // (of_heads // example.axes.sizes.get("nh", 1))
    flat_values = values.flatten().float()
    at = torch.searchsorted(ordered.values, flat_values).clamp(max=tensor.numel() - 1)
    is_there = ordered.values[at] == flat_values
    matched = (
        torch.where(is_there, grid.flatten()[ordered.indices[at]], -1) for grid in (places, heads)
    )
    return Addresses(argument, *(grid.reshape(values.shape) for grid in matched))


@dataclass(frozen=True)
class OriginTable:
    """Rows of a head, or of a whole sequence, by name: the student's addresses and the expected
    ones, −1 for none.

    title: of the head. legend: above it, "" behind the first. more: how many heads are not shown.
    """

    title: str
    rows: tuple[tuple[str, list[int], list[int]], ...]
    legend: str = ""
    hidden_heads: int = 0

    @property
    def wrong_rows(self) -> tuple[tuple[str, list[int], list[int]], ...]:
        """The rows that are wrong."""
        return tuple(row for row in self.rows if row[1] != row[2])


def origins(example: Example, values: Tensor) -> tuple[OriginTable, ...]:
    """Return the first sequence of an answer of the right shape, head by head; nothing if the call
    does more than move numbers.
    """
    actual, expected = addresses(example, values), addresses(example, example.expected)
    if (
        actual is None
        or expected is None
        or example.signature is None
        or values.dim() not in (3, 4)
    ):
        return ()
    both = [
        side.places[0].reshape(-1, *values.shape[-2:])[:BLOCKS, :ROWS, :COLUMNS].tolist()
        for side in (actual, expected)
    ]
    names = [
        _WORDS.get(str(axis.factors[0]), str(axis.factors[0])) for axis in example.signature.returns
    ]
    heads = example.expected.shape[1] if len(names) == 4 else 1
    legend = f"each number of sequence 0 by its address in {actual.argument}, 100·token + channel"
    return tuple(
        OriginTable(
            f"{names[1]} {head}" if len(names) == 4 else "",
            tuple((f"{names[-2]} {i}", *row) for i, row in enumerate(zip(*tables, strict=True))),
            legend if not head else "",
            heads - len(both[0]) if head == len(both[0]) - 1 else 0,
        )
        for head, tables in enumerate(zip(*both, strict=True))
    )
