"""The metadata of a hidden check: points, layer, hint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite
from typing import Any


class Layer(IntEnum):
    """What a check is about. Failures are shown in this order, because the first broken layer
    explains later ones.
    """

    SHAPE = 0
    FINITE = 1
    CAUSALITY = 2  # and independence of batch and heads
    VALUES = 3
    GRADIENTS = 4
    HYGIENE = 5


@dataclass(frozen=True)
class Mark:
    """The arguments of `check`."""

    points: float
    layer: Layer
    hint: str
    device: str = ""  # the only device on which it runs; empty means every device


def check(
    points: float, hint: str = "", *, layer: Layer, device: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function as a hidden check. Its docstring is the sentence that the student reads.

    Args:
        points: what it is worth: 0 or more. The sum of an exercise's checks stands in course.yaml.
        hint: what a student reads who fails it; by default the exercise's hint.
        layer: what it is about.
        device: "cuda" for a check of what only a GPU can show; on other devices the check does not
            exist. Such a check must give no points, so that a score means the same on every device.

    Raises:
        ValueError: if the points or the layer are none, or if a check for one device alone has
            points.
    """
    import pytest  # imported late: a student's own check has no hidden checks and should start fast

    if not isinstance(points, int | float) or not isfinite(points) or points < 0:
        raise ValueError(f"points={points!r}: a check gives 0 points or more")
    if not isinstance(layer, Layer):
        raise ValueError(
            f"layer={layer!r}: a check has one of "
            f"{', '.join(f'Layer.{member.name}' for member in Layer)}"
        )
    if device and points:
        raise ValueError(f"a check that runs on {device} alone gives no points")
    return pytest.mark.hidden_check(Mark(points, layer, hint, device))
