"""Decide whether two replies to the same call are the same to rounding."""

from __future__ import annotations

import torch
from torch import Tensor

from ..box.worker.messages import Build, Call, DeviceArgument, Output, Raised, Reply
from ..checks.asserts import TOLERANCE, difference
from ..checks.explain import is_refusal, kind_of
from ..checks.projection import FLOOR


def is_comparable(call: Call) -> bool:
    """Return whether the values of a reply to this call can be compared with a mutant's.

    They cannot with dropout, in a check of dtypes or devices, or with weights that a module draws
    itself: these depend on the order in which it makes its layers.
    """
    own_check = call.random or call.only_build or call.dtype or call.autocast or call.memory
    return not (
        own_check or _is_on_meta_or_training(call) or asks_for_a_gpu(call) or has_own_weights(call)
    )


def agree(a: Reply, b: Reply) -> bool:
    """Return whether two replies are the same to rounding, or raise the same kind of exception."""
    if a.raised is not None or b.raised is not None:
        return a.raised is not None and b.raised is not None and _same_exception(a.raised, b.raised)
    if len(a.outputs) != len(b.outputs) or not all(map(_same_output, a.outputs, b.outputs)):
        return False
    # If an output contains NaN, the way in which the formula is written decides which gradients
    # are NaN, too.
    undefined = any(
        output.tensor is not None and bool(output.tensor.isnan().any()) for output in b.outputs
    )
    return a.gradients.keys() == b.gradients.keys() and (undefined or _same_gradients(a, b))


def _is_on_meta_or_training(call: Call) -> bool:
    builds = [v for v in call.inputs if isinstance(v, Build)]
    tensors = [v for v in call.inputs if isinstance(v, Tensor)]
    return any(b.training or b.device == "meta" for b in builds) or any(
        t.device.type == "meta" for t in tensors
    )


def has_own_weights(call: Call) -> bool:
    """Return whether the call builds a module without giving its weights."""
    return any(isinstance(value, Build) and value.state is None for value in call.inputs)


def asks_for_a_gpu(call: Call) -> bool:
    """Return whether the call names a GPU.

    The judge has none, so it cannot put the same call to trusted code.
    """
    devices = (value for value in call.inputs if isinstance(value, Build | DeviceArgument))
    return any((v.name if isinstance(v, DeviceArgument) else v.device) == "cuda" for v in devices)


def _same_exception(a: Raised, b: Raised) -> bool:
    if is_refusal(a) or is_refusal(b):
        return is_refusal(a) and is_refusal(b)
    error_kind = kind_of(a)
    return error_kind is not None and error_kind is kind_of(b)


def _same_output(a: Output, b: Output) -> bool:
    return _same_values(a.tensor, b.tensor) and (b.tensor is not None or a.kind == b.kind)


def _same_gradients(a: Reply, b: Reply) -> bool:
    gradients = [g for g in b.gradients.values() if g is not None and g.numel()]
    scale = max((float(g.double().nan_to_num().abs().max()) for g in gradients), default=0.0)
    return all(
        _same_values(gradient, b.gradients[name], scale or None)
        for name, gradient in a.gradients.items()
    )


def _same_values(a: Tensor | None, b: Tensor | None, scale: float | None = None) -> bool:
    if a is None or b is None or a.shape != b.shape:
        return a is b
    a, b = _without_floor(a.double()), _without_floor(b.double())
    nan = b.isnan()
    return (
        torch.equal(a.isnan(), nan)
        and difference(a.masked_fill(nan, 0.0), b.masked_fill(nan, 0.0), scale) <= TOLERANCE
    )


def _without_floor(t: Tensor) -> Tensor:
    """Replace very low values by −inf.

    A finite minimum in place of −inf is correct, so it must not hide another fault.
    """
    return t.masked_fill(t <= FLOOR, float("-inf"))
