"""Whether chance or rounding decides a reply. What they decide is not recorded: every machine would record another."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from ..box.worker.messages import Build, Call
from ..checks.cast import map_call
from ..checks.implementation import Runner
from ..public.fingerprint import ReplyFingerprint, fingerprint_beside, fingerprint_of
from .same_reply import is_same_reply

SEEDS = (1, 2)
NUDGE, NARROW_NUDGE = 1e-9, 1e-6  # relative changes of the inputs as small as a rounding error: in float64, in float32
# How often inputs are changed. A number that another processor rounds to another side is that near to the middle that a
# change of float32's size moves it there about every second time; of float64 there is hardly ever one.
DRAWS, NARROW_DRAWS = 1, 8


def is_deterministic(runner: Runner, call: Call) -> bool:
    """Whether the reply is the same for different random seeds."""
    if not call.random and not (isinstance(call.subject, Build) and call.subject.training):
        return True
    first, second = (runner.execute(dataclasses.replace(call, seed=seed)) for seed in SEEDS)
    if is_same_reply(first, second):
        return True
    return fingerprint_of(first).agrees(fingerprint_of(second), ("outputs", "gradients"))


def is_of_rounding(runner: Runner, call: Call, found: ReplyFingerprint, right: ReplyFingerprint) -> bool:
    """Whether rounding decides this reply to the call, for example in a division by a sum that cancels.

    Another processor computes other numbers there. right: the reference's reply.
    """
    generator = torch.Generator().manual_seed(0)
    is_wide = call.dtype in (None, "float64") and call.autocast is None and {*found.dtype} <= {"float64"}
    nudge, draws = (NUDGE, DRAWS) if is_wide else (NARROW_NUDGE, NARROW_DRAWS)

    def nudged(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point() or tensor.device.type == "meta":
            return tensor
        return tensor * (1 + nudge * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype))

    replies = (runner.execute(map_call(call, nudged)) for _ in range(draws))
    return any(not found.is_same(fingerprint_beside(right, call, reply)) for reply in replies)
