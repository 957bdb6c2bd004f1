"""Warn about a view or reshape that mixes tokens, judging by its shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..box.worker.answers import Step
from .axes import Axes

_READ_ANEW = frozenset("view reshape flatten unflatten reshape_as view_as".split())


def view_warning(step: Step, axes: Axes) -> str:
    """The warning, or "". A view or reshape keeps the order of the numbers, so if it changes the stride of the token axis,
    that axis no longer holds tokens.
    """
    if step.name not in _READ_ANEW or len(step.inputs) != 1 or len(step.outputs) != 1:
        return ""
    before, after = step.inputs[0].shape, step.outputs[0].shape
    for name, size in axes.sizes.items():
        was = [_stride(before, at) for at, other in enumerate(before) if other == size]
        now = [_stride(after, at) for at, other in enumerate(after) if other == size]
        if name[0] == "T" and size > 1 and was and now and not set(was) & set(now):
            then, here = axes.name(was[0]), axes.name(now[0])
            return f"{name} is no longer {name}: a step along it was {then} numbers, here it is {here}"
    return ""


def _stride(shape: Sequence[int], axis: int) -> int:
    """The stride of the axis in a contiguous tensor of this shape."""
    return math.prod(shape[axis + 1 :])
