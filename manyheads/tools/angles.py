"""By how much a function turns each pair of neighbouring channels, for `course plot`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_SHORT = 1e-2  # a pair this short has no direction in float32
_ROUNDING = 1e-3


def turns(found: Tensor, given: Tensor) -> Tensor:
    """The angle from each pair of `given` to that of `found`: (…, T, hd) → (…, T, hd / 2). Short pairs count as not turned."""
    before, after = _pairs(given), _pairs(found)
    angle = torch.atan2(after[..., 1], after[..., 0]) - torch.atan2(before[..., 1], before[..., 0])
    return torch.where(before.norm(dim=-1) > _SHORT, wrapped(angle), 0.0)


def wrapped(angle: Tensor) -> Tensor:
    """The same angle in (−π, π]."""
    turned: Tensor = math.pi - (math.pi - angle).remainder(2 * math.pi)
    return turned


def resized(found: Tensor, given: Tensor) -> Tensor:
    """Which pairs have another length than before: no rotation does that. (…, T, hd / 2)"""
    before, after = (torch.linalg.vector_norm(_pairs(t), dim=-1) for t in (given, found))
    alike: Tensor = (after - before).abs() <= _ROUNDING * (1 + before)  # NaN counts as another length
    return ~alike


def _pairs(values: Tensor) -> Tensor:
    pairs: Tensor = values.double().unflatten(-1, (-1, 2))
    return pairs
