"""A difference planted into PyTorch's fused attention: large, another at every position, and of what was computed.

Whoever compares the fused attention with another finds exactly this difference. Whoever guesses what rounding leaves, looks
at one sequence alone, or computes with another input, finds another number.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

_STEP = 0.6180339887498949  # the golden ratio's fraction: its multiples lie evenly, and none repeats another
_BESIDE = 0.05  # of the amount: what all positions get but the one


class Planted(TorchFunctionMode):
    """While this mode is on, F.scaled_dot_product_attention gives its result, changed at every position.

    amount: how much is added at one position, one to three times, as the result there says; elsewhere little.
    place: where that position is: from 0 (the first number of the result) to below 1 (the last).
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
