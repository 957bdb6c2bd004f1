"""Convert a call, which a check writes in float64 on the CPU, to a dtype and a device."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ..box.worker.messages import Build, Call, StandIn


def cast(call: Call, dtype: str, device: str = "cpu") -> Call:
    """Return the call with every floating-point tensor and every module in this dtype, to be
    executed on this device.

    A module that states a dtype or a device keeps it. The tensors are moved in the process that
    executes the call.
    """
    target, elsewhere = getattr(torch, dtype), None if device == "cpu" else device
    changed = map_call(
        call,
        lambda tensor: tensor.to(target) if tensor.is_floating_point() else tensor,
        lambda build: {"dtype": build.dtype or dtype, "device": build.device or elsewhere},
    )
    return changed if elsewhere is None else dataclasses.replace(changed, device=elsewhere)


def rounded(call: Call) -> Call:
    """Return the call with every number rounded to float32, in which files store it."""
    return map_call(call, lambda t: t.float().double() if t.is_floating_point() else t)


def map_call(
    call: Call,
    tensor: Callable[[Tensor], Tensor],
    build: Callable[[Build], Mapping[str, Any]] = lambda _: {},
) -> Call:
    """Apply `tensor` to every tensor of the call, and set the fields that `build` returns in every
    Build.
    """

    def change(value: Any) -> Any:
        if isinstance(value, Tensor):
            return tensor(value)
        if isinstance(value, Build):
            state = None if value.state is None else {k: change(v) for k, v in value.state.items()}
            return dataclasses.replace(value, state=state, **build(value))
        if isinstance(value, StandIn):
            return dataclasses.replace(
                value, linears={k: tensor(w) for k, w in value.linears.items()}
            )
        return (
            tuple(map(change, value))
            if isinstance(value, tuple) and value is call.cotangent
            else value
        )

    subject = change(call.subject)  # the first: a release draws numbers in this order
    return dataclasses.replace(call.map(change), subject=subject, cotangent=change(call.cotangent))
