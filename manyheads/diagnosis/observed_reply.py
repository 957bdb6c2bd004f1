"""One recorded call: the reference's reply and the attempt's reply, and how the two differ.

With dropout active, a single output is random, but the extremes over many copies of one input are
not: those are compared. A call with tensors on the meta device shows only which devices the attempt
uses. The text of a misconception may state how wrong answers look (a direction): then a violated
oracle names it only if the answers look so.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..box.worker.messages import Build, Call, MovedAfterACall, Output, Reply
from ..checks.explain_exceptions import kind_of
from ..checks.runner import target_of
from .fingerprint import ReplyFingerprint, comparable_fingerprint, has_no_numbers

Expected = tuple[Tensor | None, ...]


@dataclass(frozen=True)
class ObservedReply:
    """One recorded call, with the reply of the reference and the reply of an attempt.

    Attributes:
        expected: the fingerprint of the reference's reply.
        expected_outputs: the tensors that the reference returned in the first run, or None for an
            output without numbers.
        reply: the attempt's reply.
        actual: its fingerprint.
    """

    call: Call
    expected: ReplyFingerprint
    expected_outputs: Expected
    reply: Reply
    actual: ReplyFingerprint

    @property
    def function(self) -> str:
        """The function that is called, or the class that is built."""
        return target_of(self.call)

    @property
    def is_allowed(self) -> bool:
        """Whether the reference accepts the arguments."""
        return self.expected.raised is None


def observe_reply(
    call: Call, expected_reply: ReplyFingerprint, expected: Expected, reply: Reply
) -> ObservedReply:
    """Return an attempt's reply together with the reference's recorded one."""
    actual = comparable_fingerprint(expected_reply, call, reply)
    return ObservedReply(call, expected_reply, expected, reply, actual)


def first_of(expected: Expected) -> Tensor | None:
    """Return the reference's first output, or None if it has none or one without numbers."""
    return expected[0] if expected else None


MIN_COPIES = 64  # with fewer, some outcome of a few coins may be missing
# Relative to the largest number. A release changes inputs by less, to find calls in which rounding
# decides.
SAME_INPUT = 1e-5
ZERO = 1e-6  # relative to the largest number: a smaller one counts as 0


def is_of_copies(call: Call) -> bool:
    """Return whether the call gives a module in training mode many copies of one input.

    The copies are the rows of the first tensor argument, MIN_COPIES at least.
    """
    if not call.random or not isinstance(call.subject, Build) or not call.subject.training:
        return False
    tensor = next((value for value in call.args if isinstance(value, Tensor)), None)
    if tensor is None or tensor.dim() < 2 or len(tensor) < MIN_COPIES:
        return False
    return bool(((tensor - tensor[:1]).abs() <= SAME_INPUT * tensor.abs().max()).all())


def summarise_copies(call: Call, reply: Reply) -> Reply:
    """Return the reply, with the extremes over all copies in place of its outputs (`_extremes`).

    Return the reply itself if the call is not `is_of_copies`.
    """
    if not reply.outputs or not is_of_copies(call):
        return reply
    return dataclasses.replace(reply, outputs=tuple(map(_extremes, reply.outputs)))


def _extremes(output: Output) -> Output:
    """Return an output with four rows in place of the copies, which lie along axis 0.

    For each number of a copy, the rows have:

    1. its minimum over all copies;
    2. its maximum over all copies;
    3. its smallest absolute value above ZERO, or 0 if it is 0 in all copies;
    4. a flag: 1 if in some copy it is 0 while another number of its last axis is not.

    An output does not change if it has no floats, has fewer than two axes, or is empty.
    """
    tensor = output.tensor
    if tensor is None or not tensor.is_floating_point():
        return output
    if tensor.dim() < 2 or not tensor.numel():
        return output
    magnitudes = tensor.abs()
    survives = magnitudes > ZERO * magnitudes.max()
    smallest = torch.where(survives, magnitudes, torch.inf).amin(0)
    smallest = smallest.masked_fill(smallest == torch.inf, 0.0)
    is_dropped_alone = (~survives & survives.any(-1, keepdim=True)).any(0)
    flags = is_dropped_alone.to(tensor.dtype)
    extremes = torch.stack([tensor.amin(0), tensor.amax(0), smallest, flags])
    return dataclasses.replace(output, tensor=extremes, shape=tuple(extremes.shape))


# misconceptions: a device is written into the code; a mask stays behind when its module moves
HARD_CODED, BEHIND = "hard_coded_device", "mask_not_moved"

# Each of PyTorch's messages about reading the numbers of a meta tensor has this word: "meta
# tensors", "register_meta".
_META = re.compile(r"(\b|_)meta(\b|_)", re.IGNORECASE)


def needs_meta_numbers(observation: ObservedReply) -> bool:
    """Return whether the attempt raised because it read numbers of a meta tensor, which has none.

    Correct code may do this, too.
    """
    raised = observation.reply.raised
    return (
        raised is not None
        and has_no_numbers(observation.expected)
        and bool(_META.search(raised.message))
    )


def device_error(observation: ObservedReply) -> str:
    """Return a message if the arguments are on the meta device and another tensor is not, or "".

    The other tensor is an output, or a tensor of the code: PyTorch refuses to combine such a tensor
    with the arguments, or an operation mixes both.
    """
    if not has_no_numbers(observation.expected):
        return ""
    operations, raised = observation.reply.operations, observation.reply.raised
    error_kind = None if raised is None else kind_of(raised)
    is_error = error_kind is not None and error_kind.misconception == HARD_CODED
    if is_error or (operations is not None and operations.mixed):
        if is_moved_after_a_call(observation.call):
            return (
                "tensors on two devices meet; one of them was made in an earlier call, before "
                "the module moved"
            )
        return (
            "tensors on two devices meet; one of them was made on a fixed device, or taken to one"
        )
    for output in observation.reply.outputs:
        if output.device and output.device != "meta":
            return f"the output is on {output.device} wherever the arguments are"
    return ""


def device_misconception(observation: ObservedReply) -> str:
    """Return the misconception that a call on the meta device proves, or "".

    The first of these applies:

    1. Return "" if no device is wrong, or if a weight is no parameter: such a weight cannot follow
       its module.
    2. Return BEHIND, a mask that did not move with its module, if the module has a plain tensor
       that may be a mask.
    3. Return "" if the module moved after a call: tensors that the earlier call made stay behind,
       too.
    4. Return HARD_CODED, a device that is written into the code.
    """
    if not device_error(observation):
        return ""
    names = observation.expected.parameters.keys()
    if not all(names <= module.parameters.keys() for module in observation.reply.modules):
        return ""
    for module in observation.reply.modules:
        if any(_may_be_a_mask(tensor.shape) for tensor in module.plain.values()):
            return BEHIND
    return "" if is_moved_after_a_call(observation.call) else HARD_CODED


def _may_be_a_mask(shape: Sequence[int]) -> bool:
    """Return whether a tensor of this shape is one matrix, which all sequences and heads share.

    A stored input or a cache has more than one matrix.
    """
    return len(shape) > 1 and all(length == 1 for length in shape[:-2])


def is_moved_after_a_call(call: Call) -> bool:
    """Return whether a module answers a first call before it moves to the meta device."""
    return isinstance(call.around, MovedAfterACall)


Direction = Literal["moved rows", "missing"]  # how the wrong answers of a misconception look
SAME = 1e-5  # relative to the largest number: two rows are equal, or a number is 0


def without_other_directions(
    names: Mapping[int, str],
    observations: Mapping[int, ObservedReply],
    directions: Mapping[str, Direction],
) -> dict[int, str]:
    """Return the misconceptions that the direction of wrong answers confirms, by call.

    A misconception without a direction is kept. One with a direction is kept, for all its calls, if
    at least one of the answers to them has this direction.

    Args:
        names: the misconceptions, by call.
        observations: the replies, by call.
        directions: the direction of each misconception that has one.
    """
    confirmed: dict[int, str] = {}
    for name in dict.fromkeys(names.values()):
        calls = [call for call, candidate in names.items() if candidate == name]
        direction = directions.get(name)
        replies = (observations[call] for call in calls if call in observations)
        if direction is None or any(map(_HAS_DIRECTION[direction], replies)):
            confirmed |= dict.fromkeys(calls, name)
    return confirmed


def _rows_are_moved(observation: ObservedReply) -> bool:
    """Return whether each output has exactly the rows of the right output, in any order.

    A row may occur more or less often. Rows in their right order count, too. Return False if an
    output has another shape, or fewer than two axes. Outputs without numbers are skipped.
    """
    for actual, expected in _tables(observation):
        if actual.shape != expected.shape or actual.dim() < 2:
            return False
        rows = actual.reshape(-1, actual.shape[-1])
        expected_rows = expected.reshape(-1, expected.shape[-1])
        tolerance = SAME * float(expected_rows.abs().max())
        are_equal = torch.cdist(rows, expected_rows, p=float("inf")) <= tolerance
        if not (bool(are_equal.any(0).all()) and bool(are_equal.any(1).all())):
            return False
    return True


def _something_is_missing(observation: ObservedReply) -> bool:
    """Return whether numbers are missing, are 0, or are sums that lack a term.

    1. An output has fewer numbers than the right one.
    2. A number of an output with the right shape is 0, and the right one is not.
    3. The last of several outputs has the right shape. Some of its numbers are too small, and none
       is too large.
    """
    tables = _tables(observation)
    for actual, expected in tables:
        if actual.numel() < expected.numel():
            return True
        if actual.shape != expected.shape:
            continue
        scale = float(expected.abs().max())
        if bool(((actual.abs() <= SAME * scale) & (expected.abs() > SAME * scale)).any()):
            return True
    # The last of several outputs may be the logarithm of a sum, too small if a term is missing.
    if len(tables) < 2:
        return False
    sums, expected_sums = tables[-1]
    if sums.shape != expected_sums.shape:
        return False
    change = sums - expected_sums
    tolerance = SAME * float(expected_sums.abs().max())
    return bool((change <= tolerance).all()) and bool((change < -tolerance).any())


def _tables(observation: ObservedReply) -> list[tuple[Tensor, Tensor]]:
    """Return the outputs that have numbers in both replies: the attempt's and the reference's."""
    outputs = [output.tensor for output in observation.reply.outputs]
    pairs = zip(outputs, observation.expected_outputs, strict=False)
    return [(a.double(), b.double()) for a, b in pairs if a is not None and b is not None]


_HAS_DIRECTION: Mapping[Direction, Callable[[ObservedReply], bool]] = {
    "moved rows": _rows_are_moved,
    "missing": _something_is_missing,
}
