"""What a call with tensors on the meta device, which have no numbers, shows of an attempt's devices."""

from __future__ import annotations

from ..checks.explain import kind_of
from .compared import Compared

HARD_CODED = "hard_coded_device"


def has_no_numbers(each: Compared) -> bool:
    """Whether the answer is on the meta device. Who looks at numbers raises there, and may."""
    return any(output.shape is not None and not output.projections for output in each.right.outputs)


def on_another_device(each: Compared) -> str:
    """What is wrong where the arguments are on the meta device, and something else is not; "" if nothing is."""
    if not has_no_numbers(each):
        return ""
    seen, kind = each.reply.operations, each.reply.raised and kind_of(each.reply.raised)
    if (seen is not None and seen.mixed) or (kind and kind.misconception == HARD_CODED):
        return "tensors on two devices meet; one of them was made on a fixed device, or taken to one"
    elsewhere = next((out.device for out in each.reply.outputs if out.device not in (None, "meta")), None)
    return f"the output is on {elsewhere} wherever the arguments are" if elsewhere else ""


def is_of_a_fixed_device(each: Compared) -> bool:
    """Whether a device that is written into the code is the reason: the module holds nothing that may have stayed behind."""
    if not on_another_device(each):
        return False
    for facts in each.reply.modules:
        stays = any(len(entry.shape) > 1 for entry in facts.plain.values())
        if stays or not each.right.parameters.keys() <= facts.parameters.keys():
            return False
    return True
