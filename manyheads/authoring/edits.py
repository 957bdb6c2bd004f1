"""Two calls of which one is the other with an edit of an argument: a check of who hears whom asks such calls."""

from __future__ import annotations

import torch
from torch import Tensor

from ..box.worker.messages import Build, Call


def is_an_edit(first: Call, second: Call) -> bool:
    """Whether both ask the same once, but for some of the numbers in one tensor that is passed."""
    if first.then or second.then or first.kwargs or second.kwargs or len(first.args) != len(second.args):
        return False
    if not _are_alike(first.subject, second.subject):
        return False
    others = [(a, b) for a, b in zip(first.args, second.args, strict=True) if not _are_alike(a, b)]
    if len(others) != 1:
        return False
    a, b = others[0]
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    return "meta" not in (a.device.type, b.device.type) and bool((a == b).any())


def _are_alike(a: object, b: object) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return isinstance(a, Tensor) and isinstance(b, Tensor) and a.device == b.device and torch.equal(a, b)
    if isinstance(a, Build) and isinstance(b, Build):
        one, two = a.state or {}, b.state or {}
        same = (a.target, a.args, a.kwargs, a.training) == (b.target, b.args, b.kwargs, b.training)
        return same and one.keys() == two.keys() and all(_are_alike(one[name], two[name]) for name in one)
    return type(a) is type(b) and isinstance(a, int | float | str | None) and a == b
