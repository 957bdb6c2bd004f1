"""Whether two answers to the same call are the same to rounding."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..box.worker.answers import Output, Raised, Reply
from ..box.worker.messages import Build, Call, DeviceArgument
from ..checks.asserts import TOLERANCE, difference
from ..checks.explain import is_refusal, kind_of
from ..checks.projection import FLOOR
from ..checks.recording import Exchange

HUGE = 1e6  # of numbers around 1: what is left of a difference that should be 0, as a divisor


def comparable(exchange: Exchange) -> bool:
    """Whether the values of this exchange say something: no dropout at work, no check of dtypes or devices."""
    call = exchange.call
    own_check = call.random or call.only_build or call.dtype or call.autocast or call.memory
    return not (own_check or _is_on_meta_or_training(call) or _asks_for_a_gpu(call))


def agree(a: Reply, b: Reply) -> bool:
    """The same outputs and gradients to rounding, or the same kind of exception."""
    if a.raised is not None or b.raised is not None:
        return a.raised is not None and b.raised is not None and _same_exception(a.raised, b.raised)
    if len(a.outputs) != len(b.outputs) or not all(map(_same_output, a.outputs, b.outputs)):
        return False
    return a.gradients.keys() == b.gradients.keys() and _same_gradients(a, b)


def agree_but_for_the_huge(a: Reply, b: Reply) -> bool:
    """The same, where a huge number and none at all count as the same: of a division by nearly nothing rounding makes either."""
    if len(a.outputs) != len(b.outputs) or a.gradients.keys() != b.gradients.keys():
        return False
    return agree(a, b) or agree(_without_huge(a, b), _without_huge(b, a))


def _without_huge(mine: Reply, other: Reply) -> Reply:
    """The reply with none in place of a number that is huge or none in both."""
    pairs = zip(mine.outputs, other.outputs, strict=True)
    outputs = [replace(m, tensor=_none_where_both_are_huge(m.tensor, o.tensor)) for m, o in pairs]
    gradients = {name: _none_where_both_are_huge(g, other.gradients[name]) for name, g in mine.gradients.items()}
    return replace(mine, outputs=tuple(outputs), gradients=gradients)


def _none_where_both_are_huge(mine: Tensor | None, other: Tensor | None) -> Tensor | None:
    if mine is None or other is None or mine.shape != other.shape:
        return mine
    if not mine.is_floating_point() or not other.is_floating_point():
        return mine
    huge = ~(mine.abs() < HUGE) & ~(other.abs() < HUGE)
    return mine.masked_fill(huge & ~(mine * other < 0), torch.nan)


def _is_on_meta_or_training(call: Call) -> bool:
    builds = [v for v in (call.subject, *call.args, *call.kwargs.values()) if isinstance(v, Build)]
    tensors = [v for v in (*call.args, *call.kwargs.values()) if isinstance(v, Tensor)]
    return any(b.training or b.device == "meta" for b in builds) or any(t.device.type == "meta" for t in tensors)


def _asks_for_a_gpu(call: Call) -> bool:
    """By name: the judge, which has none, could not ask trusted code the same."""
    values = (call.subject, *call.args, *call.kwargs.values())
    named = [
        v.name if isinstance(v, DeviceArgument) else v.device for v in values if isinstance(v, Build | DeviceArgument)
    ]
    return "cuda" in named


def _same_exception(a: Raised, b: Raised) -> bool:
    if is_refusal(a) or is_refusal(b):
        return is_refusal(a) and is_refusal(b)
    kind = kind_of(a)
    return kind is not None and kind is kind_of(b)


def _same_output(a: Output, b: Output) -> bool:
    if a.tensor is None or b.tensor is None:
        return a.tensor is b.tensor and a.kind == b.kind
    return _same_values(a.tensor, b.tensor)


def _same_gradients(a: Reply, b: Reply) -> bool:
    present = [g for g in b.gradients.values() if g is not None and g.numel()]
    scale = max((float(g.double().nan_to_num().abs().max()) for g in present), default=0.0)
    for name, mine in a.gradients.items():
        other = b.gradients[name]
        if mine is None or other is None:
            if mine is not other:
                return False
        elif not _same_values(mine, other, scale or None):
            return False
    return True


def _same_values(a: Tensor, b: Tensor, scale: float | None = None) -> bool:
    if a.shape != b.shape:
        return False
    a, b = _without_floor(a.double()), _without_floor(b.double())
    nan = b.isnan()
    if bool((a.isnan() != nan).any()):
        return False
    if bool(nan.any()):
        a, b = a.masked_fill(nan, 0.0), b.masked_fill(nan, 0.0)
    return difference(a, b, scale) <= TOLERANCE


def _without_floor(t: Tensor) -> Tensor:
    """A finite minimum in place of −inf is right (CONTRACT section 3), so it must not hide another fault."""
    return t.masked_fill(t <= FLOOR, float("-inf"))
