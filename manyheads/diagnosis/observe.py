"""One recorded call: how the reference answered it and how an attempt did, and what of the two is
compared.

Of many copies of one input chance decides each answer of dropout's, but not the extremes of all
of them: those are recorded and compared in place of the answers. A call with tensors on the meta
device, which have no numbers, shows an attempt's devices.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..box.worker.messages import Build, Call, Output, Reply
from ..checks.explain import kind_of
from .fingerprint import ReplyFingerprint, fingerprint_beside, has_no_numbers

Expected = tuple[Tensor | None, ...]


@dataclass(frozen=True)
class ObservedReply:
    """One recorded call: how the reference answered it, and how an attempt did.

    expected: the reference's output; of a call that returns several, each of the first run. None:
        an output without numbers.
    """

    call: Call
    expected: ReplyFingerprint
    expected_outputs: Expected
    reply: Reply
    actual: ReplyFingerprint


def observed(
    call: Call, expected_reply: ReplyFingerprint, expected: Expected, reply: Reply
) -> ObservedReply:
    """Return a reply beside what is recorded of the reference's."""
    return ObservedReply(
        call, expected_reply, expected, reply, fingerprint_beside(expected_reply, call, reply)
    )


def first_of(expected: Expected) -> Tensor | None:
    """Return the first output, to which a relation of several calls is put."""
    return expected[0] if expected else None


FEWEST = 64  # copies, so that every outcome of a few coins is among them
# of the largest number: a release nudges inputs by less, to find what rounding decides
ALIKE = 1e-5
NOTHING = 1e-6  # of the largest number: it is as good as 0


def is_of_copies(call: Call) -> bool:
    """Return whether a module is asked, in training, about many copies of one input."""
    tensor = next((value for value in call.args if isinstance(value, Tensor)), None)
    if tensor is None or not (
        call.random and isinstance(call.subject, Build) and call.subject.training
    ):
        return False
    are_many = tensor.dim() > 1 and len(tensor) >= FEWEST
    return are_many and bool(((tensor - tensor[:1]).abs() <= ALIKE * tensor.abs().max()).all())


def settled(call: Call, reply: Reply) -> Reply:
    """Return the reply, with the extremes of its answers if the call is about copies."""
    if not reply.outputs or not is_of_copies(call):
        return reply
    return dataclasses.replace(reply, outputs=tuple(map(_extremes, reply.outputs)))


def _extremes(output: Output) -> Output:
    """Return the smallest and the largest number over all copies, and the smallest size of those
    that are not 0.

    And 1 where a number is 0 in a copy in which others beside it, of the last axis, are not.
    """
    tensor = output.tensor
    if tensor is None or not tensor.is_floating_point() or tensor.dim() < 2 or not tensor.numel():
        return output
    sizes = tensor.abs()
    is_there = sizes > NOTHING * sizes.max()
    smallest = torch.where(is_there, sizes, torch.inf).amin(0)
    smallest = smallest.masked_fill(smallest == torch.inf, 0.0)
    struck = (~is_there & is_there.any(-1, keepdim=True)).any(0).to(tensor.dtype)
    extremes = torch.stack([tensor.amin(0), tensor.amax(0), smallest, struck])
    return dataclasses.replace(output, tensor=extremes, shape=tuple(extremes.shape))


HARD_CODED, BEHIND = "hard_coded_device", "mask_not_moved"

# In each of PyTorch's messages to who looks at numbers that are not there: "meta tensors",
# "register_meta".
_META = re.compile(r"(\b|_)meta(\b|_)", re.IGNORECASE)


def looks_at_no_numbers(comparison: ObservedReply) -> bool:
    """Return whether it raised because it looked at numbers where there are none, which right code
    may do, too.
    """
    raised = comparison.reply.raised
    return (
        raised is not None
        and has_no_numbers(comparison.expected)
        and bool(_META.search(raised.message))
    )


def on_another_device(comparison: ObservedReply) -> str:
    """Return what is wrong where the arguments are on the meta device, and something else is not;
    "" if nothing is.
    """
    if not has_no_numbers(comparison.expected):
        return ""
    operations, error_kind = (
        comparison.reply.operations,
        comparison.reply.raised and kind_of(comparison.reply.raised),
    )
    if (operations is not None and operations.mixed) or (
        error_kind and error_kind.misconception == HARD_CODED
    ):
        if is_moved_after_a_call(comparison.call):
            return (
                "tensors on two devices meet; one of them was made in an earlier call, before "
                "the module moved"
            )
        return (
            "tensors on two devices meet; one of them was made on a fixed device, or taken to one"
        )
    elsewhere = next(
        (out.device for out in comparison.reply.outputs if out.device not in (None, "meta")), None
    )
    return f"the output is on {elsewhere} wherever the arguments are" if elsewhere else ""


def fault_of_device(comparison: ObservedReply) -> str:
    """Return the misconception that such a call proves.

    A tensor that the module holds stayed behind, or else a device that is written into the code. ""
    where there is none, or where a weight is no parameter, and so cannot follow the module; and
    where the module moved after a call, which leaves more behind than what is written into the
    code.
    """
    modules = comparison.reply.modules
    if not on_another_device(comparison) or any(
        not comparison.expected.parameters.keys() <= m.parameters.keys() for m in modules
    ):
        return ""
    if any(_may_be_a_mask(tensor.shape) for m in modules for tensor in m.plain.values()):
        return BEHIND
    return "" if is_moved_after_a_call(comparison.call) else HARD_CODED


def _may_be_a_mask(shape: Sequence[int]) -> bool:
    """Return whether it has rows and columns, and one of each for all sequences and heads.

    A kept input or cache has more.
    """
    return len(shape) > 1 and all(length == 1 for length in shape[:-2])


def is_moved_after_a_call(call: Call) -> bool:
    """Return whether a module is built where it is, answers once, and only then moves to the meta
    device.
    """
    takes_meta = any(
        isinstance(value, Tensor) and value.device.type == "meta" for value in call.args
    )
    return (
        takes_meta
        and bool(call.around)
        and isinstance(call.subject, Build)
        and call.subject.device is None
    )
