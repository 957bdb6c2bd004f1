"""What an attempt answers: a Reply, or a Traced to a TraceCall.

An annotation says what a field may hold on the wire, with its bounds: `manyheads.box.replies` reads
nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from .form import read_misfit
from .text import NAME_LIMIT, WORDS_LIMIT

MOST_AXES = 64  # of a tensor
TENSOR_LIMIT = 512  # tensors of a reply, or names in one of its mappings
BASES_LIMIT = 50  # classes of an exception that are sent
MADE_LIMIT = 256  # how many different sizes of new tensors are reported: the largest ones
SHAPES_LIMIT = 256  # and how many different shapes
KERNELS_LIMIT = 256  # how many different kernels are reported
STOPPED_LIMIT = 64  # how many exceptions of parts are reported: the first ones
PARTS_LIMIT = 100_000  # how many parts a file may have that is loaded stepwise
LARGEST = 2**63  # of a whole number that is reported: no tensor holds a larger one
# of a trace: the most distinct steps, operations in their order, and crops
STEPS, ORDER, CROPS = 400, 20_000, 512
SIDES, DEPTH = 8, 6  # the most inputs or outputs of a step, and lines that lead to it
ELEMENTS = 16_384  # the most numbers of a crop
SLICES = 8  # the most runs of a step whose slices are kept: the first heads of a loop


class Between(NamedTuple):
    """A bound: of a whole number, of the length of a text, a list or a mapping, or of how many
    numbers a tensor has.
    """

    least: int
    most: int


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype: "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


Name = Annotated[str, Between(0, NAME_LIMIT)]
Words = Annotated[str, Between(0, WORDS_LIMIT)]
# Evidence may repeat these two, so they are torch's words, never a student's.
Dtype = Annotated[
    str, frozenset(dtype_name(d) for d in vars(torch).values() if isinstance(d, torch.dtype))
]
DeviceType = Annotated[
    str,
    frozenset(
        "cpu cuda mps xpu meta hpu mtia xla vulkan mkldnn maia ipu lazy privateuseone".split()
    ),
]
KernelName = Annotated[str, re.compile("[A-Za-z0-9_]{1,100}")]
Size = Annotated[int, Between(0, (1 << 40) - 1)]
Shape = Annotated[tuple[Size, ...], Between(0, MOST_AXES)]
Crop = Annotated[Tensor, Between(0, ELEMENTS)]
Attribute = bool | Annotated[int, Between(-LARGEST, LARGEST)] | float | Name


@dataclass(frozen=True)
class Raised:
    """An exception in the attempt's code.

    line: the innermost line of the student's own file in the traceback, None if there is none.
    part: while a file is loaded, the line at which the part begins that raised it.
    in_written: of a NotImplementedError, whether the function that raises it has something written
    in it. The worker does not say so: it is read from the text.
    """

    type: Name
    bases: Annotated[tuple[Name, ...], Between(0, BASES_LIMIT)]
    message: Words
    stage: Annotated[str, frozenset({"load", "build", "call", "gradient"})]
    line: Size | None
    part: Size | None = None
    in_written: Annotated[bool, frozenset({False})] = False


@dataclass(frozen=True)
class Output:
    """What one run returned, or one step of it at one leaf of its form.

    `tensor` is None unless it is a plain dense tensor, or plain numbers of another kind: an
    ndarray, a list, a text.
    """

    # "tensor", or the type's name; OPAQUE; or what `form.misfit` says of another structure
    kind: Name
    tensor: Tensor | None = None
    dtype: Dtype | None = None
    device: DeviceType | None = None
    shape: Shape | None = None

    @property
    def came(self) -> str:
        """The kind of what came, also where it stands in place of a structure."""
        misfit = read_misfit(self.kind)
        return self.kind if misfit is None else misfit[1]


@dataclass(frozen=True)
class Entry:
    """A parameter or buffer of a module."""

    shape: Shape
    dtype: Dtype
    device: DeviceType


EntriesByName = Annotated[Mapping[Name, Entry], Between(0, TENSOR_LIMIT)]
# By "0", "1", … in their order: no check needs their names, which an attempt chooses as it runs.
EntriesInOrder = Annotated[
    Mapping[Annotated[str, re.compile("[0-9]{1,3}")], Entry], Between(0, TENSOR_LIMIT)
]


@dataclass(frozen=True)
class ModuleFacts:
    """The state of a module after the call."""

    parameters: EntriesByName
    buffers: EntriesInOrder
    training: bool
    changed: bool  # whether the call changed a parameter
    # Names in the given state for which the module has no matching tensor.
    unloaded: Annotated[tuple[Name, ...], Between(0, 64)]
    # of any other kind, the name of its type
    attributes: Annotated[Mapping[Name, Attribute], Between(0, 32)]
    # Tensors that are attributes, but neither parameters nor buffers.
    plain: EntriesInOrder = field(default_factory=dict)


@dataclass(frozen=True)
class Operations:
    """Which operations ran, as far as they can be observed."""

    fused: bool  # scaled_dot_product_attention or nn.MultiheadAttention was called
    # The different sizes of new tensors in elements, ascending; the largest of them.
    made: Annotated[tuple[Size, ...], Between(0, MADE_LIMIT)] = ()
    # an operation took tensors on two devices, which is an error on real devices
    mixed: bool = False
    recorded: bool = False  # autograd recorded a fused operation
    # The different shapes of new tensors, by size ascending; the largest of them.
    shapes: Annotated[tuple[Shape, ...], Between(0, SHAPES_LIMIT)] = ()
    # The names of PyTorch's own kernels that ran, without overloads: "_softmax", "bmm".
    kernels: Annotated[tuple[KernelName, ...], Between(0, KERNELS_LIMIT)] = ()


@dataclass(frozen=True)
class Reply:
    """The answer to a Load, a Part or a Call.

    stopped: the exceptions of parts of the file that did not run to their end.
    parts: of a stepwise Load, the line at which each part begins.
    """

    outputs: Annotated[tuple[Output, ...], Between(0, TENSOR_LIMIT)] = ()
    gradients: Annotated[Mapping[Name, Tensor | None], Between(0, TENSOR_LIMIT)] = field(
        default_factory=dict
    )
    raised: Raised | None = None
    # the names of arguments that the call changed in place
    mutated: Annotated[tuple[Name, ...], Between(0, 64)] = ()
    modules: Annotated[tuple[ModuleFacts, ...], Between(0, 16)] = ()
    operations: Operations | None = None
    stopped: Annotated[tuple[Raised, ...], Between(0, STOPPED_LIMIT)] = ()
    # bytes allocated beyond those before the call; None if the device does not report them
    peak: Size | None = None
    parts: Annotated[tuple[Size, ...], Between(0, PARTS_LIMIT)] = ()


def tensors_of(reply: Reply) -> list[Tensor]:
    """Return all tensors of a reply."""
    tensors = [*(output.tensor for output in reply.outputs), *reply.gradients.values()]
    return [tensor for tensor in tensors if tensor is not None]


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of an operation. `value`: the number in a tensor without axes."""

    shape: Shape
    dtype: Name
    contiguous: bool
    value: float | None = None


@dataclass(frozen=True)
class Slice:
    """A slice along one axis of a tensor: the places from `start` to `stop` - 1."""

    axis: Size
    start: Size
    stop: Size


@dataclass(frozen=True)
class Step:
    """One operation of a line, however often it ran.

    lines: the student's lines that lead to it, outermost first; sites: the bytecode offset in
    each. storage: how the output's memory relates to the inputs; empty if unknown.
    input_count, output_count: how many tensors went in and came out, of which the first are
    listed. numbers: plain numbers among the arguments. crops: a corner of the output of its first
    runs. slices: the places that its first runs show, if it slices an axis.
    """

    name: Annotated[str, Between(0, 60)]
    lines: Annotated[tuple[Size, ...], Between(1, DEPTH)]
    sites: Annotated[tuple[Size, ...], Between(1, DEPTH)]
    inputs: Annotated[tuple[TensorInfo, ...], Between(0, SIDES)] = ()
    outputs: Annotated[tuple[TensorInfo, ...], Between(0, SIDES)] = ()
    input_count: Size = 0
    output_count: Size = 0
    storage: Annotated[str, frozenset({"view", "copy", "new", "same", "in place", ""})] = ""
    numbers: Annotated[tuple[float, ...], Between(0, 4)] = ()
    raised: bool = False
    crops: Annotated[tuple[Crop, ...], Between(0, CROPS)] = ()
    slices: Annotated[tuple[Slice, ...], Between(0, SLICES)] = ()


@dataclass(frozen=True)
class Traced:
    """The answer to a TraceCall.

    `order`: indices into `steps`. `dropped`: how many operations were not recorded.
    """

    reply: Reply
    steps: Annotated[tuple[Step, ...], Between(0, STEPS)]
    order: Annotated[tuple[Size, ...], Between(0, ORDER)]
    dropped: Size = 0
