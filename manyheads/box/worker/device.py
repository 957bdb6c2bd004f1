"""The device options of a call: where it runs, in which precision, and whether peak memory is reported."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from .messages import Call, StandIn


def on_its_device(call: Call) -> Call:
    """Return the call with its tensors moved to its device. Modules are moved when they are built, meta tensors never."""
    where = call.device
    if where is None:
        return call

    def moved(tensor: Tensor) -> Tensor:
        return tensor if tensor.device.type == "meta" else tensor.to(where)

    def there(value: object) -> object:
        if isinstance(value, Tensor):
            return moved(value)
        if isinstance(value, StandIn):
            return dataclasses.replace(value, linears={name: moved(weight) for name, weight in value.linears.items()})
        return value

    cotangent = tuple(None if c is None else moved(c) for c in call.cotangents)
    return dataclasses.replace(
        call.map(there), cotangent=cotangent if isinstance(call.cotangent, tuple) else next(iter(cotangent), None)
    )


def autocast(dtype: str | None, values: Iterable[object]) -> AbstractContextManager[Any]:
    """Mixed precision ("float16", "bfloat16") on the device of the first tensor; None means no autocast."""
    if dtype is None:
        return nullcontext()
    device = next((value.device.type for value in values if isinstance(value, Tensor)), "cpu")
    return torch.autocast(device, getattr(torch, dtype))


class Peak:
    """`with Peak() as peak: …` and then `peak.bytes`."""

    bytes: int | None = (
        None  # allocated at the peak beyond what was allocated before; None if the device does not report it
    )

    def __enter__(self) -> Peak:
        self._before = 0
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            self._before = torch.cuda.memory_allocated()
        return self

    def __exit__(self, *exc: object) -> None:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
            self.bytes = torch.cuda.max_memory_allocated() - self._before
