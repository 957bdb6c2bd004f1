"""A call as a check wrote it, in float64 and nowhere in particular, made one for a dtype and a device."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ..box.worker.messages import Build, Call, StandIn


def cast(call: Call, dtype: str, device: str = "cpu") -> Call:
    """The call with every floating-point tensor in that dtype and every module built in it, to be made on that device.

    A module that states a dtype or a device keeps it. The tensors are moved where the call is made.
    """
    target, elsewhere = getattr(torch, dtype), None if device == "cpu" else device

    def convert(tensor: Tensor) -> Tensor:
        return tensor.to(target) if tensor.is_floating_point() else tensor

    changed = map_call(
        call, convert, lambda build: {"dtype": build.dtype or dtype, "device": build.device or elsewhere}
    )
    return changed if elsewhere is None else dataclasses.replace(changed, device=elsewhere)


def map_call(
    call: Call, tensor: Callable[[Tensor], Tensor], build: Callable[[Build], Mapping[str, Any]] = lambda _: {}
) -> Call:
    """The call with every tensor changed by `tensor`, and in every module's description the fields that `build` gives."""

    def change(value: Any) -> Any:
        if isinstance(value, Tensor):
            return tensor(value)
        if isinstance(value, Build):
            state = None if value.state is None else {k: change(v) for k, v in value.state.items()}
            return dataclasses.replace(value, state=state, **build(value))
        if isinstance(value, StandIn):
            return dataclasses.replace(value, linears={k: tensor(w) for k, w in value.linears.items()})
        return value

    return dataclasses.replace(
        call,
        subject=change(call.subject),
        args=tuple(change(a) for a in call.args),
        kwargs={k: change(v) for k, v in call.kwargs.items()},
        cotangent=change(call.cotangent),
    )
