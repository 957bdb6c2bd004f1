"""A known difference in the result of PyTorch's fused attention: another at every position, and dependent on it.

An attempt that compares fused attention with a written-out path must report exactly this difference. An attempt that
guesses a rounding error, looks at one sequence only, or computes with another input reports another number.
"""

_SOURCE = """
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

STEP = 0.6180339887498949  # of the golden ratio: its multiples modulo 1 are evenly spread, and none repeats
BESIDE = 0.05  # the share of the amount that all other positions get


class Planted(TorchFunctionMode):
    def __init__(self, amount, place):
        super().__init__()
        self._amount, self._place = amount, place

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        count = out.numel() if func is F.scaled_dot_product_attention and isinstance(out, Tensor) else 0
        if not count:
            return out
        share = BESIDE * ((torch.arange(count, dtype=torch.float64) * STEP) % 1.0 - 0.5)
        share[int(self._place * count)] = 1.0
        share = share.view(out.shape).to(out.device, out.dtype)
        return out + self._amount * share * (2 + torch.tanh(out))
"""


def planting(amount: float, place: float) -> str:
    """Return what to put around a call: at a place, from 0 (the first number) to below 1, the amount times 1 to 3 is added."""
    return f"{_SOURCE}\n\ndef around(subject, build):\n    return Planted({amount!r}, {place!r})\n"
