"""The call with which an example is traced, and the corner of what comes back."""

from __future__ import annotations

from torch import Tensor

from ..box.worker.messages import TraceCall
from ..checks.cast import cast
from .crops import TABLES, TIMES
from .example import Example


def trace_call(example: Example, crop: tuple[int, ...] = (), times: int = 1) -> TraceCall:
    """The call to trace, in float32. Tiles are found by their numbers, so more of these are requested where there are tiles."""
    call = cast(example.call, "float32")
    return TraceCall(call, crop, times) if example.tiled is None else TraceCall(call, TABLES, TIMES)


def corner(table: Tensor, crop: tuple[int, ...]) -> Tensor:
    """The first numbers along the last axes, at index 0 of the others."""
    while table.dim() > len(crop):
        table = table[0]
    return table[tuple(slice(count) for count in crop[len(crop) - table.dim() :])]
