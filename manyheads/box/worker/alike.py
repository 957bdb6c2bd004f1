"""Whether a module differs from its twin in nothing that it computes but its weights: the same code, and the same content.

Such modules compute the same function of their weights. Objects that cannot be compared, for example of a class that
the student wrote, count as different; of a dataclass the fields are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass

import torch
from torch import Tensor, nn

_PLAIN = (bool, int, float, str, bytes, type(None), set, frozenset, torch.dtype, torch.device)


class _Empty(nn.Module):
    """With what every class has."""

    def __init__(self) -> None:
        super().__init__()


def are_alike(module: nn.Module, twin: nn.Module) -> bool:
    """Whether the module differs from its twin only in the numbers in its parameters, in its mode, and in attributes that
    neither the twin nor their class has. It may be of a class of its own, below the twin's, that adds no more than an `__init__`.
    """
    there = _content(twin)
    mine = {name: value for name, value in _content(module).items() if name in there or hasattr(type(module), name)}
    try:
        return _adds_nothing(type(module), type(twin)) and _same(mine, there)
    except RecursionError:  # an object that contains itself
        return False


def _adds_nothing(kind: type, base: type) -> bool:
    own = kind.__mro__[: kind.__mro__.index(base)] if issubclass(kind, base) else (object,)
    return all(vars(each).keys() <= vars(_Empty).keys() for each in own)


def _content(module: nn.Module) -> dict[str, object]:
    return {name: value for name, value in vars(module).items() if name != "training"}


def _same(a: object, b: object) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, nn.Module) and isinstance(b, nn.Module):
        return _same(_content(a), _content(b))
    if is_dataclass(a) and hasattr(a, "__dict__"):
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
