"""What a hidden check says about itself: points, layer, hint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any


class Layer(IntEnum):
    """In this order a student reads failures: the first broken layer explains those after it."""

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
    device: str = ""  # the only one on which it is run


def check(
    *, points: float, layer: Layer, hint: str = "", device: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function as a hidden check. Its docstring is the sentence that the student reads.

    device: "cuda" for what only a GPU can show; elsewhere the check does not exist. It gives no points, so that a
    score means the same on every device. Raises ValueError where it does.
    """
    import pytest  # a student's own check has no hidden checks, and need not wait for this

    if device and points:
        raise ValueError(f"a check that runs on {device} alone gives no points")
    return pytest.mark.hidden_check(Mark(points, layer, hint, device))
