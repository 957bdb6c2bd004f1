"""Prepare the meta device. Its first operation would import 800 modules and take over a second in every fresh process."""

from __future__ import annotations

import gc
from types import CodeType, FunctionType

import torch._compile
import torch.fx.experimental.symbolic_shapes


def make_ready() -> None:
    """Import what operations on the meta device need, and prevent the import of what they do not need."""
    _without_dynamo()


def _without_dynamo() -> None:
    """Call torch's functions that are wrapped by `_disable_dynamo` without their wrapper.

    The wrapper imports torch._dynamo at the first call, which is needed only under torch.compile. Does nothing if torch
    has changed here.
    """
    parts = torch._compile._disable_dynamo.__code__.co_consts
    wrappers = {code for code in parts if isinstance(code, CodeType) and "disable_fn" in code.co_varnames}
    for wrapper in gc.get_objects():
        if type(wrapper) is FunctionType and wrapper.__code__ in wrappers:
            cells = dict(zip(wrapper.__code__.co_freevars, wrapper.__closure__ or (), strict=True))
            hidden = cells["fn"].cell_contents if "fn" in cells else None
            if type(hidden) is FunctionType:
                vars(hidden)["__dynamo_disable"] = hidden
