"""Whether two replies are the same to the last bit. That is seen sooner than their fingerprints are made."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..box.worker.answers import ModuleFacts, Output, Reply
from ..public.fingerprint import attributes_of, operations_of


def is_same_reply(a: Reply, b: Reply) -> bool:
    """Whether both have the same fingerprint because they are the same. False proves nothing: NaN equals nothing."""
    return (
        a.raised is None
        and b.raised is None
        and a.mutated == b.mutated
        and len(a.outputs) == len(b.outputs)
        and all(map(_is_same_output, a.outputs, b.outputs))
        and _are_same(a.gradients, b.gradients)
        and _facts(a.modules) == _facts(b.modules)
        and attributes_of(a) == attributes_of(b)
        and operations_of(a) == operations_of(b)
    )


def _is_same_output(a: Output, b: Output) -> bool:
    return (a.kind, a.dtype, a.shape) == (b.kind, b.dtype, b.shape) and _is_same_tensor(a.tensor, b.tensor)


def _are_same(a: Mapping[str, Tensor | None], b: Mapping[str, Tensor | None]) -> bool:
    return a.keys() == b.keys() and all(_is_same_tensor(each, b[name]) for name, each in a.items())


def _is_same_tensor(a: Tensor | None, b: Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    if (a.dtype, a.device, a.shape) != (b.dtype, b.device, b.shape) or a.device.type == "meta":
        return False
    return torch.equal(a, b)


def _facts(modules: tuple[ModuleFacts, ...]) -> object:
    """The parameters that a fingerprint has of the first module."""
    return {name: entry.shape for name, entry in modules[0].parameters.items()} if modules else None
