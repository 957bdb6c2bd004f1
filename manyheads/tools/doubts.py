"""What is odd about an operation, seen from its shapes alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..box.worker.answers import Step
from .axes import Axes

_READ_ANEW = frozenset("view reshape flatten unflatten reshape_as view_as".split())


def doubt_about(step: Step, axes: Axes) -> str:
    """A view or reshape keeps the order of the numbers: where it seems to move the tokens, they are tokens no more.

    Empty where there is nothing to say.
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
    """How many numbers a step along the axis skips, in the order in which a view reads them."""
    return math.prod(shape[axis + 1 :])
