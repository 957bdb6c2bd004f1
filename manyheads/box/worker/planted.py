"""Add a known difference to the result of PyTorch's fused attention: another at every position, and dependent on it.

An attempt that compares fused attention with a written-out path must report exactly this difference. An attempt that
guesses a rounding error, looks at one sequence only, or computes with another input reports another number.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

_STEP = (
    0.6180339887498949  # the fraction of the golden ratio: its multiples modulo 1 are evenly spread, and none repeats
)
_BESIDE = 0.05  # the share of the amount that all other positions get


class Planted(TorchFunctionMode):
    """While this mode is on, the result of F.scaled_dot_product_attention is changed at every position.

    amount: added at one position, multiplied by one to three depending on the result there; elsewhere a small share of it.
    place: that position, from 0 (the first number of the result) to below 1 (the last).
    """

    def __init__(self, amount: float, place: float) -> None:
        super().__init__()
        self._amount, self._place = amount, place

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        count = out.numel() if func is F.scaled_dot_product_attention and isinstance(out, Tensor) else 0
        if not count:
            return out
        share = _BESIDE * ((torch.arange(count, dtype=torch.float64) * _STEP) % 1.0 - 0.5)
        share[int(self._place * count)] = 1.0
        share = share.view(out.shape).to(out.device, out.dtype)
        return out + self._amount * share * (2 + torch.tanh(out))
