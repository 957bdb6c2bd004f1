"""Whether two modules differ in their weights only: the same class, and the same content otherwise.

Such modules compute the same function of their weights. Objects that cannot be compared, for example of a class that
the student wrote, count as different; of a dataclass the fields are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass

import torch
from torch import Tensor, nn

_PLAIN = (bool, int, float, str, bytes, type(None), set, frozenset, torch.dtype, torch.device)


def are_alike(a: nn.Module, b: nn.Module) -> bool:
    """Whether the modules differ only in the numbers in their parameters."""
    try:
        return _same(a, b)
    except RecursionError:  # an object that contains itself
        return False


def _same(a: object, b: object) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, nn.Module) or (is_dataclass(a) and hasattr(a, "__dict__")):
        return _same(vars(a), vars(b))
    if isinstance(a, nn.Parameter) and isinstance(b, nn.Parameter):
        return (a.shape, a.dtype, a.device, a.requires_grad) == (b.shape, b.dtype, b.device, b.requires_grad)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device) and torch.equal(a, b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, _PLAIN):
        return a == b
    return a is b  # a function or a class
