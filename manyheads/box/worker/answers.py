"""What an attempt answers: Reply, and Traced to a TraceCall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor

MADE_LIMIT = 256  # different sizes of new tensors that are reported, the largest of them


@dataclass(frozen=True)
class Raised:
    """An exception in the attempt's code.

    stage: "load", "build", "call" or "gradient".
    line: the innermost line of the student's own file, None where there is none.
    """

    type: str
    bases: tuple[str, ...]
    message: str
    stage: str
    line: int | None


@dataclass(frozen=True)
class Output:
    """What one run returned. `tensor` is None for anything but a plain dense tensor or number."""

    kind: str  # "tensor", or the type's name
    tensor: Tensor | None = None
    dtype: str | None = None
    device: str | None = None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Entry:
    """A parameter or buffer of a module."""

    shape: tuple[int, ...]
    dtype: str
    device: str


@dataclass(frozen=True)
class ModuleFacts:
    """What stands in a module after the call, in the order it was built."""

    parameters: Mapping[str, Entry]
    buffers: Mapping[str, Entry]
    training: bool
    changed: bool  # a parameter differs from what it was before the call
    unloaded: tuple[str, ...]  # names of the given state with no matching tensor
    attributes: Mapping[str, object]  # bool, int, float or str; anything else as its type's name
    plain: Mapping[str, Entry] = field(default_factory=dict)  # tensors that are attributes, but neither of the above
    alike: bool = False  # its twin is the same but for the weights


@dataclass(frozen=True)
class Operations:
    """Which operations ran, as far as they let themselves be watched."""

    fused: bool  # scaled_dot_product_attention or nn.MultiheadAttention was called
    made: tuple[
        int, ...
    ] = ()  # numbers of elements of new tensors, each once, smallest first; of very many the largest
    mixed: bool = False  # an operation took tensors on two devices, which is an error on real ones
    recorded: bool = False  # a fused operation ran with gradients recorded
    stopped: bool = False  # there were more operations than asked for

    @property
    def largest(self) -> int:
        """Elements of the largest new tensor, not counting what scaled_dot_product_attention makes inside."""
        return max(self.made, default=0)


@dataclass(frozen=True)
class Reply:
    """The answer to a Load or a Call."""

    outputs: tuple[Output, ...] = ()
    gradients: Mapping[str, Tensor | None] = field(default_factory=dict)
    raised: Raised | None = None
    mutated: tuple[str, ...] = ()  # names of arguments whose values changed
    modules: tuple[ModuleFacts, ...] = ()
    operations: Operations | None = None
    peak: int | None = None  # bytes beyond what was held before the call; None where the device does not say


@dataclass(frozen=True)
class Seen:
    """A tensor that went into an operation or came out. `value`: that of a tensor without axes."""

    shape: tuple[int, ...]
    dtype: str
    contiguous: bool
    value: float | None = None


@dataclass(frozen=True)
class Step:
    """One operation of a line, however often it ran.

    lines: the student's lines that lead to it, outermost first; sites: where in the bytecode of each. kept: "view",
    "copy", "new", "same", "in place", or empty where that cannot be told. taken, given: how many tensors went in and
    came out, of which the first are listed. numbers: plain numbers among the arguments. crops: a corner of what came
    out, of the first times that it ran.
    """

    name: str
    lines: tuple[int, ...]
    sites: tuple[int, ...]
    inputs: tuple[Seen, ...] = ()
    outputs: tuple[Seen, ...] = ()
    taken: int = 0
    given: int = 0
    kept: str = ""
    numbers: tuple[float, ...] = ()
    raised: bool = False
    crops: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Traced:
    """The answer to a TraceCall. `order` refers to `steps`; `lost` operations were too many to note."""

    reply: Reply
    steps: tuple[Step, ...]
    order: tuple[int, ...]
    lost: int = 0


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """ "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")
