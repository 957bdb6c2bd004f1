"""Numbers in columns of few bytes: a recording is tens of thousands of short rows, and every student downloads it.

Simple numbers are small integers, and projections have sixteen bits. Columns are not compressed, so that a version control
system stores what has changed, and no more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

SIMPLE = -4  # the exponent of the step between simple numbers: whole ones, halves, sixteenths
_INTEGERS = (torch.int8, torch.int16, torch.int32)
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32)
}


class TensorColumns:
    """Tensors of any shape as columns of numbers, each different tensor once."""

    def __init__(self) -> None:
        self.specs: list[list[Any]] = []
        self._parts: dict[str, list[Tensor]] = {name: [] for name in ("int8", "int16", "int32", "raw")}
        self._known: dict[tuple[object, ...], int] = {}

    def add(self, tensor: Tensor) -> int:
        """Add a tensor, whose floats are kept in float32, and return its index."""
        tensor = tensor.detach().contiguous()
        tensor = tensor.float() if tensor.is_floating_point() else tensor
        key = (str(tensor.dtype), tuple(tensor.shape), tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
        if key not in self._known:
            self._known[key] = len(self.specs)
            repeats = tensor.dim() > 0 and len(tensor) > 1 and bool((tensor == tensor[:1]).all())
            stored = self._put(tensor[:1] if repeats else tensor)
            self.specs.append([str(tensor.dtype).removeprefix("torch."), list(tensor.shape), *stored, int(repeats)])
        return self._known[key]

    def _put(self, tensor: Tensor) -> tuple[str, int]:
        flat = tensor.reshape(-1)
        if not flat.is_floating_point():
            return self._integers(flat.long()), 0
        scaled = flat.double() / 2.0**SIMPLE
        if bool((scaled == scaled.round()).all()) and bool((scaled.abs() < 2.0**15).all()):
            return self._integers(scaled.long()), SIMPLE
        self._parts["raw"].append(flat)
        return "raw", 0

    def _integers(self, values: Tensor) -> str:
        column = narrow(values)
        name = str(column.dtype).removeprefix("torch.")
        self._parts[name].append(column)
        return name

    def columns(self) -> dict[str, Tensor]:
        """Return the columns by name."""
        return {f"numbers.{name}": torch.cat(parts) for name, parts in self._parts.items() if parts}


def read_tensors(columns: dict[str, Tensor], specs: Sequence[Sequence[Any]]) -> list[Tensor]:
    """Return the tensors that `TensorColumns` stored, floats in float32. Raises ValueError, LookupError, TypeError."""
    known = {name.removeprefix("numbers."): column for name, column in columns.items()}
    place = dict.fromkeys(("int8", "int16", "int32", "raw"), 0)
    tensors = []
    for dtype, shape, column, exponent, repeats in specs:
        stored = [1, *shape[1:]] if repeats else shape
        count, start = math.prod(stored), place[column]
        place[column] = end = start + count
        flat = known[column][start:end] if count else torch.zeros(0)
        wanted = _DTYPES[dtype]
        flat = flat.to(wanted)
        if wanted is torch.float32 and column != "raw":
            flat = flat * 2.0**exponent
        tensors.append(flat.view(stored).expand(shape).contiguous())
    return tensors


def narrow(values: Tensor) -> Tensor:
    """Return integers in the narrowest type that holds all of them."""
    low, high = (int(values.min()), int(values.max())) if values.numel() else (0, 0)
    return values.to(next(d for d in _INTEGERS if torch.iinfo(d).min <= low and high <= torch.iinfo(d).max))


def to_rows(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Return (N, V) numbers as 16 bits each, and (N,) sizes of the largest number of each row."""
    sizes = to_sizes(numbers.abs().amax(1) if numbers.numel() else torch.zeros(len(numbers)))
    largest = from_sizes(sizes).masked_fill(sizes == _ZERO, 1.0)
    return (numbers.double() / largest[:, None] * 32767).round().clamp(-32767, 32767).to(torch.int16), sizes


def from_rows(whole: Tensor, sizes: Tensor) -> Tensor:
    """Return the (N, V) numbers that `to_rows` stored, in float64."""
    return whole.double() / 32767 * from_sizes(sizes)[:, None]


SIZES = 8  # steps of a stored size from one power of two to the next
_ZERO = -128  # the size of zero; what is not zero is taken for 2^-15.9 at least, so that a byte holds most sizes


def to_sizes(sizes: Tensor) -> Tensor:
    """Return positive numbers, rounded up by a tenth at most, as small integers."""
    # A size that comes from a file is taken for itself, and not for the next one.
    logarithms = (torch.log2(sizes.double().clamp_min(1e-300)) * SIZES - 1e-6).ceil().clamp_min(_ZERO + 1)
    return narrow(torch.where(sizes > 0, logarithms, float(_ZERO)).long())


def from_sizes(stored: Tensor) -> Tensor:
    """Return the numbers that `to_sizes` stored, in float64."""
    return torch.where(stored == _ZERO, 0.0, torch.exp2(stored.double() / SIZES))
