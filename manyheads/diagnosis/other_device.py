"""What a call with tensors on the meta device, which have no numbers, shows of an attempt's devices."""

from __future__ import annotations

import re

from ..checks.explain import kind_of
from .fingerprint import has_no_numbers
from .observe import Observed

HARD_CODED, BEHIND = "hard_coded_device", "mask_not_moved"

# In each of PyTorch's messages to who looks at numbers that are not there: "meta tensors", "register_meta".
_META = re.compile(r"(\b|_)meta(\b|_)", re.IGNORECASE)


def looks_at_no_numbers(comparison: Observed) -> bool:
    """Return whether it raised because it looked at numbers where there are none, which right code may do, too."""
    raised = comparison.reply.raised
    return raised is not None and has_no_numbers(comparison.right) and bool(_META.search(raised.message))


def on_another_device(comparison: Observed) -> str:
    """Return what is wrong where the arguments are on the meta device, and something else is not; "" if nothing is."""
    if not has_no_numbers(comparison.right):
        return ""
    seen, kind = comparison.reply.operations, comparison.reply.raised and kind_of(comparison.reply.raised)
    if (seen is not None and seen.mixed) or (kind and kind.misconception == HARD_CODED):
        return "tensors on two devices meet; one of them was made on a fixed device, or taken to one"
    elsewhere = next((out.device for out in comparison.reply.outputs if out.device not in (None, "meta")), None)
    return f"the output is on {elsewhere} wherever the arguments are" if elsewhere else ""


def fault_of_device(comparison: Observed) -> str:
    """Return the misconception that such a call proves.

    A tensor that the module holds stayed behind, or else a device that is written into the code. "" where there is none,
    or where a weight is no parameter, and so cannot follow the module.
    """
    modules = comparison.reply.modules
    if not on_another_device(comparison) or any(
        not comparison.right.parameters.keys() <= m.parameters.keys() for m in modules
    ):
        return ""
    return BEHIND if any(len(held.shape) > 1 for m in modules for held in m.plain.values()) else HARD_CODED
