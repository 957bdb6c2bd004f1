"""Plant a known difference in the result of PyTorch's fused attention.

The difference is another at every position, and depends on the result. An attempt that compares
fused attention with a written-out path must report exactly this difference. An attempt that guesses
a rounding error, looks at one sequence only, or computes with another input reports another number.
"""

_SOURCE = """
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.modules.module import register_module_forward_hook
from torch.overrides import TorchFunctionMode

# of the golden ratio: its multiples modulo 1 are evenly spread, and none repeats
STEP = 0.6180339887498949
BESIDE = 0.05  # the share of the amount that all other positions get

def planted(out):
    if not isinstance(out, Tensor) or not out.numel():
        return out
    share = BESIDE * ((torch.arange(out.numel(), dtype=torch.float64) * STEP) % 1.0 - 0.5)
    share[int(PLACE * out.numel())] = 1.0
    return out + AMOUNT * share.view(out.shape).to(out.device, out.dtype) * (2 + torch.tanh(out))

class InFused(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return planted(out) if func is F.scaled_dot_product_attention else out

def in_forward():
    return register_module_forward_hook(
        lambda made, args, out: planted(out) if getattr(made, "flash", False) else out
    )
"""


def planting(amount: float, position: float, hook: str = "InFused") -> str:
    """Return code to put around a call: it adds the planted difference.

    Args:
        amount: one number of the result gets this amount times 1 to 3, the others at most a
            fortieth of that.
        position: the index of this number as a share of all numbers, from 0 (the first) to below 1.
        hook: "in_forward" adds to the output of a module while its `flash` is true, for an attempt
            that does without fused attention.
    """
    return (
        f"AMOUNT, PLACE = {amount!r}, {position!r}\n{_SOURCE}\naround = lambda subject, build:"
        f" {hook}()\n"
    )
