"""Makes the meta device ready: its first operation imports 800 modules, more than a second in every fresh process."""

from __future__ import annotations

import gc
from types import CodeType, FunctionType

import torch._compile
import torch.fx.experimental.symbolic_shapes


def make_ready() -> None:
    """Import what operations on the meta device need, and keep them from importing what they do not."""
    _without_dynamo()


def _without_dynamo() -> None:
    """torch hides some functions from torch.compile, and imports torch._dynamo the first time that one is called.

    Without torch.compile there is nothing to hide from. Does nothing where torch has changed.
    """
    parts = torch._compile._disable_dynamo.__code__.co_consts
    wrappers = {code for code in parts if isinstance(code, CodeType) and "disable_fn" in code.co_varnames}
    for wrapper in gc.get_objects():
        if type(wrapper) is FunctionType and wrapper.__code__ in wrappers:
            cells = dict(zip(wrapper.__code__.co_freevars, wrapper.__closure__ or (), strict=True))
            hidden = cells["fn"].cell_contents if "fn" in cells else None
            if type(hidden) is FunctionType:
                vars(hidden)["__dynamo_disable"] = hidden
