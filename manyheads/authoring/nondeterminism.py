"""Whether chance or rounding decides a reply. What they decide is not recorded: every machine would record another."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from ..box.worker.answers import Output, Reply
from ..box.worker.messages import Build, Call
from ..checks.cast import map_call
from ..checks.implementation import Runner
from ..diagnosis.fingerprint import PLAIN, ReplyFingerprint, fingerprint_beside, fingerprint_of

NUDGE, NARROW_NUDGE = 1e-9, 2e-6  # relative changes of the inputs, larger than a rounding error: in float64, in float32
# By how much of that, in turn. A number near the middle between two roundings is moved to the other side by a change up or by
# the same change down. In float64 there is hardly ever such a number.
DRAWS, NARROW_DRAWS = (1.0,), (1.0, -1.0, 1.0, -1.0)


def is_deterministic(runner: Runner, call: Call, reply: Reply | None = None) -> bool:
    """Return whether the reply is the same for another random seed. reply: the runner's, where it is known."""
    if not call.random and not (isinstance(call.subject, Build) and call.subject.training):
        return True
    first = reply or runner.execute(call)
    second = runner.execute(dataclasses.replace(call, seed=call.seed + 1))
    if is_same_reply(first, second):
        return True
    return fingerprint_of(first).agrees(fingerprint_of(second), ("outputs", "gradients"))


def is_of_rounding(runner: Runner, call: Call, fingerprint: ReplyFingerprint, right: ReplyFingerprint) -> bool:
    """Return whether rounding decides this reply to the call, for example in a division by a sum that cancels.

    Another processor computes other numbers there. right: the reference's reply.
    """
    is_wide = call.dtype in (None, "float64") and call.autocast is None and {*fingerprint.dtype} <= {"float64"}
    nudge, draws = (NUDGE, DRAWS) if is_wide else (NARROW_NUDGE, NARROW_DRAWS)

    def nudged(place: int) -> Reply:
        generator = torch.Generator().manual_seed(place // 2)  # the same numbers for both ways

        def change(tensor: Tensor) -> Tensor:
            if not tensor.is_floating_point() or tensor.device.type == "meta":
                return tensor
            noise = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
            return tensor * (1 + draws[place] * nudge * noise)

        return runner.execute(map_call(call, change))

    replies = map(nudged, range(len(draws)))
    return any(not fingerprint.is_same(fingerprint_beside(right, call, reply)) for reply in replies)


def is_same_reply(a: Reply, b: Reply) -> bool:
    """Return whether both have the same fingerprint because they are the same to the last bit, which is seen sooner.

    False proves nothing: NaN equals nothing.
    """
    return (
        a.raised is None
        and b.raised is None
        and len(a.outputs) == len(b.outputs)
        and all(map(_is_same_output, a.outputs, b.outputs))
        and a.gradients.keys() == b.gradients.keys()
        and all(_is_same_tensor(each, b.gradients[name]) for name, each in a.gradients.items())
        and all(of(a) == of(b) for of in PLAIN.values())
    )


def _is_same_output(a: Output, b: Output) -> bool:
    return (a.kind, a.dtype, a.shape) == (b.kind, b.dtype, b.shape) and _is_same_tensor(a.tensor, b.tensor)


def _is_same_tensor(a: Tensor | None, b: Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    if (a.dtype, a.device, a.shape) != (b.dtype, b.device, b.shape) or a.device.type == "meta":
        return False
    return torch.equal(a, b)
