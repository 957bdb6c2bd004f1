"""What dropout makes of many copies of one input.

Chance decides each copy's answer, but not the extremes of all of them: those are recorded and compared in place of the
answers.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from ..box.worker.answers import Output, Reply
from ..box.worker.messages import Build, Call

FEWEST = 64  # copies, so that every outcome of a few coins is among them
ALIKE = 1e-5  # of the largest number: a release nudges inputs by less, to find what rounding decides
NOTHING = 1e-6  # of the largest number: it is as good as 0


def is_of_copies(call: Call) -> bool:
    """Return whether a module is asked, in training, about many copies of one input."""
    first = next((value for value in call.args if isinstance(value, Tensor)), None)
    if first is None or not (call.random and isinstance(call.subject, Build) and call.subject.training):
        return False
    return (
        first.dim() > 1
        and len(first) >= FEWEST
        and bool(((first - first[:1]).abs() <= ALIKE * first.abs().max()).all())
    )


def settled(call: Call, reply: Reply) -> Reply:
    """Return the reply, with the extremes of its answers if the call is about copies."""
    if not reply.outputs or not is_of_copies(call):
        return reply
    return dataclasses.replace(reply, outputs=tuple(map(_extremes, reply.outputs)))


def _extremes(output: Output) -> Output:
    """Return the smallest and the largest number over all copies, and the smallest size of those that are not 0.

    And 1 where a number is 0 in a copy in which others beside it, of the last axis, are not.
    """
    tensor = output.tensor
    if tensor is None or not tensor.is_floating_point() or tensor.dim() < 2 or not tensor.numel():
        return output
    sizes = tensor.abs()
    is_there = sizes > NOTHING * sizes.max()
    left = torch.where(is_there, sizes, torch.inf).amin(0)
    left = left.masked_fill(left == torch.inf, 0.0)
    struck = (~is_there & is_there.any(-1, keepdim=True)).any(0).to(tensor.dtype)
    extremes = torch.stack([tensor.amin(0), tensor.amax(0), left, struck])
    return dataclasses.replace(output, tensor=extremes, shape=tuple(extremes.shape))
