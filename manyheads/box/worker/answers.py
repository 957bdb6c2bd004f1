"""What an attempt answers: a Reply, or a Traced to a TraceCall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor

from .form import read_misfit

MADE_LIMIT = 256  # how many different sizes of new tensors are reported: the largest ones
SHAPES_LIMIT = 256  # and how many different shapes
KERNELS_LIMIT = 256  # how many different kernels are reported
STOPPED_LIMIT = 64  # how many exceptions of parts are reported: the first ones
PARTS_LIMIT = 100_000  # how many parts a file may have that is loaded stepwise


@dataclass(frozen=True)
class Raised:
    """An exception in the attempt's code.

    stage: "load", "build", "call" or "gradient".
    line: the innermost line of the student's own file in the traceback, None if there is none.
    part: while a file is loaded, the line at which the part begins that raised it.
    in_written: of a NotImplementedError, whether the function that raises it has something written in it. The worker does not
    say so: it is read from the text.
    """

    type: str
    bases: tuple[str, ...]
    message: str
    stage: str
    line: int | None
    part: int | None = None
    in_written: bool = False


@dataclass(frozen=True)
class Output:
    """What one run returned, or one step of it at one leaf of its form.

    `tensor` is None unless it is a plain dense tensor or a number.
    """

    kind: str  # "tensor", or the type's name; OPAQUE; or what `form.misfit` says of another structure
    tensor: Tensor | None = None
    dtype: str | None = None
    device: str | None = None
    shape: tuple[int, ...] | None = None

    @property
    def came(self) -> str:
        """The kind of what came, also where it stands in place of a structure."""
        misfit = read_misfit(self.kind)
        return self.kind if misfit is None else misfit[1]


@dataclass(frozen=True)
class Entry:
    """A parameter or buffer of a module."""

    shape: tuple[int, ...]
    dtype: str
    device: str


@dataclass(frozen=True)
class ModuleFacts:
    """The state of a module after the call."""

    parameters: Mapping[str, Entry]
    buffers: Mapping[str, Entry]
    training: bool
    changed: bool  # whether the call changed a parameter
    unloaded: tuple[str, ...]  # names in the given state for which the module has no matching tensor
    attributes: Mapping[str, object]  # bool, int, float or str; of anything else the name of its type
    plain: Mapping[str, Entry] = field(
        default_factory=dict
    )  # tensors that are attributes, but neither parameters nor buffers
    alike: bool = False  # whether its twin differs in the weights only


@dataclass(frozen=True)
class Operations:
    """Which operations ran, as far as they can be observed."""

    fused: bool  # scaled_dot_product_attention or nn.MultiheadAttention was called
    made: tuple[
        int, ...
    ] = ()  # the different sizes of new tensors in elements, ascending; the largest MADE_LIMIT of them
    mixed: bool = False  # an operation took tensors on two devices, which is an error on real devices
    recorded: bool = False  # autograd recorded a fused operation
    stopped: bool = False  # there were more operations than the call allows
    shapes: tuple[
        tuple[int, ...], ...
    ] = ()  # the different shapes of new tensors, by size ascending; the largest SHAPES_LIMIT of them
    kernels: tuple[str, ...] = ()  # the names of PyTorch's own kernels that ran, without overloads: "_softmax", "bmm"

    @property
    def largest(self) -> int:
        """The size of the largest new tensor, without those that scaled_dot_product_attention makes internally."""
        return max(self.made, default=0)


@dataclass(frozen=True)
class Reply:
    """The answer to a Load, a Part or a Call.

    stopped: the exceptions of parts of the file that did not run to their end.
    parts: of a stepwise Load, the line at which each part begins.
    """

    outputs: tuple[Output, ...] = ()
    gradients: Mapping[str, Tensor | None] = field(default_factory=dict)
    raised: Raised | None = None
    mutated: tuple[str, ...] = ()  # the names of arguments that the call changed in place
    modules: tuple[ModuleFacts, ...] = ()
    operations: Operations | None = None
    stopped: tuple[Raised, ...] = ()
    peak: int | None = None  # bytes allocated beyond those before the call; None if the device does not report them
    parts: tuple[int, ...] = ()


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of an operation. `value`: the number in a tensor without axes."""

    shape: tuple[int, ...]
    dtype: str
    contiguous: bool
    value: float | None = None


@dataclass(frozen=True)
class Step:
    """One operation of a line, however often it ran.

    lines: the student's lines that lead to it, outermost first; sites: the bytecode offset in each. storage: how the output's
    memory relates to the inputs: "view", "copy", "new", "same", "in place", or empty if unknown. input_count, output_count:
    how many tensors went in and came out, of which the first are listed. numbers: plain numbers among the arguments.
    crops: a corner of the output of its first runs.
    """

    name: str
    lines: tuple[int, ...]
    sites: tuple[int, ...]
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    input_count: int = 0
    output_count: int = 0
    storage: str = ""
    numbers: tuple[float, ...] = ()
    raised: bool = False
    crops: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Traced:
    """The answer to a TraceCall. `order`: indices into `steps`. `dropped`: how many operations were not recorded."""

    reply: Reply
    steps: tuple[Step, ...]
    order: tuple[int, ...]
    dropped: int = 0


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype: "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")
