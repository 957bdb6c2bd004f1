"""Describe tensors without changing them: also inside vmap, on meta, and for subclasses that misreport themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from .answers import TensorInfo, dtype_name

ELEMENTS = 16_384  # the most numbers of a crop
T = TypeVar("T")
Snapshot = tuple[Tensor, int, int]  # a tensor, its memory address and its version at one moment


def tensors_in(value: Any, depth: int = 3) -> Iterator[Tensor]:
    """Yield the tensors in a value, also in nested lists and tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list) and depth:
        for item in value:
            yield from tensors_in(item, depth - 1)


def snapshot(tensors: Iterable[Tensor]) -> list[Snapshot]:
    """Return the current address and version of these tensors."""
    return [(t, _memory(t), _version(t)) for t in tensors]


def tensor_info(tensor: Tensor) -> TensorInfo:
    """Return the tensor's shape and dtype, and its value if it has no axes."""
    shape = tuple(int(n) for n in tensor.shape)
    has_value = not shape and tensor.device.type == "cpu" and tensor.dtype in _NUMBERS
    value = _quietly(lambda: float(tensor.detach()), None) if has_value else None
    return TensorInfo(shape, dtype_name(tensor.dtype), _quietly(tensor.is_contiguous, True), value)


def storage_of(before: list[Snapshot], out: Tensor, moves: bool) -> str:
    """Return how the output's memory relates to the inputs (`Step.storage`). `moves`: the operation changes no number."""
    if any(_version(t) != version for t, _, version in before):
        return "in place"
    if any(t is out for t, _, _ in before):
        return "same"
    memory = _memory(out)
    if not memory:
        return ""
    return "view" if any(memory == m for _, m, _ in before) else "copy" if moves and before else "new"


def crop_of(tensor: Tensor, counts: tuple[int, ...]) -> Tensor | None:
    """Return the first `counts` numbers along the last axes, at index 0 of the others, as bool or float32; None if impossible."""
    plain = type(tensor) in (Tensor, nn.Parameter) and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    if not counts or not plain or tensor.layout is not torch.strided or tensor.device.type == "meta":
        return None
    found = tensor.detach()
    while found.dim() > len(counts):
        if not len(found):
            return None
        found = found[0]
    found = found[tuple(slice(count) for count in counts[len(counts) - found.dim() :])]
    if found.numel() > ELEMENTS or found.is_complex() or found.is_quantized:
        return None
    return found.to("cpu", torch.bool if found.dtype is torch.bool else torch.float32, copy=True)


_NUMBERS = (torch.float32, torch.float64, torch.int64)


def _memory(tensor: Tensor) -> int:
    """Return the address of the tensor's memory; 0 if it has none of its own (inside vmap, on meta)."""
    return _quietly(lambda: tensor.untyped_storage().data_ptr(), 0)


def _version(tensor: Tensor) -> int:
    return _quietly(lambda: tensor._version, 0)


def _quietly(ask: Callable[[], T], otherwise: T) -> T:
    try:
        return ask()
    except Exception:
        return otherwise
