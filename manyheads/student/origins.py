"""Show where each number of an output came from, which makes a wrong view visible.

This works for functions that move numbers without changing them: the recorded output contains each number of the input
once. As in the lesson, an address is 10000·batch + 100·token + channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from torch import Tensor

from .example import Example

BLOCKS, ROWS, COLUMNS = 2, 12, 16  # the most that is shown
_WORDS = {"T": "token", "nh": "head"}


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
    given = _only_tensor(example)
    if given is None or example.signature is None or found.dim() not in (3, 4):
        return None
    argument, tensor = given
    places = {value: i for i, value in enumerate(tensor.float().flatten().tolist())}
    if len(places) != tensor.numel() or sorted(places) != sorted(example.expected.float().flatten().tolist()):
        return None
    shape = next(p.shape for p in example.signature.call if p.name == argument) or ()
    addresses = _addresses([str(axis.factors[0]) for axis in shape], tensor.shape)

    def table(values: Tensor, right: Tensor) -> tuple[tuple[OriginCell, ...], ...]:
        pairs = zip(values.float().tolist(), right.float().tolist(), strict=True)
        return tuple(tuple(_cell(places, addresses, v, r) for v, r in zip(*row, strict=True)) for row in pairs)

    def cut(values: Tensor) -> Tensor:
        return values[0].reshape(-1, *values.shape[-2:])[:BLOCKS, :ROWS, :COLUMNS]

    yours, right = cut(found), cut(example.expected)
    names = [_WORDS.get(str(axis.factors[0]), str(axis.factors[0])) for axis in example.signature.returns]
    rows = tuple(f"{names[-2]} {i}" for i in range(yours.shape[1]))
    titles = [f"{names[1]} {i}" for i in range(len(yours))] if len(names) == 4 else [""]
    blocks = tuple(
        OriginBlock(title, rows, table(mine, wanted), table(wanted, wanted))
        for title, mine, wanted in zip(titles, yours, right, strict=True)
    )
    more = example.expected.shape[1] - len(blocks) if len(names) == 4 else 0
    return OriginPicture(argument, blocks, more, bool((found.float() == example.expected.float()).all()))


def _only_tensor(example: Example) -> tuple[str, Tensor] | None:
    tensors = [(name, value) for name, value in example.arguments.items() if isinstance(value, Tensor)]
    return tensors[0] if len(tensors) == 1 and tensors[0][1].is_floating_point() else None


def _addresses(names: Sequence[str], shape: Sequence[int]) -> list[tuple[int, int]]:
    """Return (address, token) of every number, in the tensor's order. The channel enumerates all other axes."""
    addresses = []
    for index in product(*map(range, shape)):
        batch = token = channel = 0
        for name, size, at in zip(names, shape, index, strict=True):
            if name == "B":
                batch = at
            elif name == "T":
                token = at
            else:
                channel = channel * size + at
        addresses.append((10_000 * batch + 100 * token + channel, token))
    return addresses


def _cell(places: dict[float, int], addresses: list[tuple[int, int]], value: float, right: float) -> OriginCell:
    place = places.get(value)
    address, token = (None, -1) if place is None else addresses[place]
    return OriginCell(address, token, value == right)
