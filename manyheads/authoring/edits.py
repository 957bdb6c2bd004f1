"""Two calls of which one is the other with an edit of an argument: a check of who hears whom asks such calls."""

from __future__ import annotations

from torch import Tensor

from ..box.worker.messages import Call
from ..public.chance import are_alike


def is_an_edit(first: Call, second: Call) -> bool:
    """Whether both ask the same once, but for some of the numbers in one tensor that is passed."""
    if first.then or second.then or first.kwargs or second.kwargs or len(first.args) != len(second.args):
        return False
    if not are_alike(first.subject, second.subject):
        return False
    others = [(a, b) for a, b in zip(first.args, second.args, strict=True) if not are_alike(a, b)]
    if len(others) != 1:
        return False
    a, b = others[0]
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    return "meta" not in (a.device.type, b.device.type) and bool((a == b).any())
