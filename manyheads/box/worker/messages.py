"""The messages between judge and worker in both directions, and text of bounded length in them.

The judge sends a Load, a Call, a TraceCall or a message of training. The worker answers with a
Reply or a Traced. The annotation of a field bounds its value on the wire: `manyheads.box.replies`
reads nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor

from .form import ONE, Form, PartPath, read_misfit

NAME_LIMIT = 200  # characters of a name: of a type, a parameter, an attribute
WORDS_LIMIT = 4000  # characters of any other text
_NAME = type.__dict__["__name__"].__get__  # past a metaclass that has a __name__ of its own


def plain(text: str, limit: int) -> str:
    r"""Return the first characters of the text; half a surrogate pair is spelled out, as \udce9."""
    start = str.__getitem__(text, slice(limit))
    return start if start.isascii() else start.encode("utf-8", "backslashreplace").decode()[:limit]


def type_name(type_: type) -> str:
    """Return the name of a type."""
    return plain(_NAME(type_), NAME_LIMIT)


@dataclass(frozen=True)
class Load:
    """Import this source text as the attempt's module: its parts, the statements of its top level,
    one after the other.

    A part that raises does not stop those below it.
    cells: of a notebook, the line at which each cell begins. A cell that cannot be parsed is one
        part.
    skipped: the numbers of parts that are not run, counted from 0.
    stepwise: run nothing yet, and say at which line each part begins. A Part then runs each.
    """

    source: str
    name: str  # the file's name as the student knows it
    cells: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()
    stepwise: bool = False


@dataclass(frozen=True)
class Part:
    """Run one part of a source text that was loaded stepwise."""

    number: int


@dataclass(frozen=True)
class Entries:
    """A tensor of zeros with a few other entries: cheap to send, however large it is."""

    shape: tuple[int, ...]
    indices: Tensor  # (N, len(shape)), int64
    values: Tensor  # (N,)


@dataclass(frozen=True)
class Build:
    """Make a module: call `target` with the arguments, then load its state by name.

    `target` is a class of the attempt, or a function of it that returns a module.
    Parameters that `state` does not name are set to zero, so that an extra parameter
    changes no value and is judged by itself. A parameter with at most two distinct
    values (ones; zeros and ones) is not a random weight and keeps them.
    """

    target: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    state: Mapping[str, Tensor | Entries] | None = None  # None: as the constructor left it
    training: bool = False
    attributes: Mapping[str, object] = field(default_factory=dict)  # set after building
    report: tuple[str, ...] = ()  # the names of attributes to report after the call
    dtype: str | None = None
    device: str | None = None
    skip_init: bool = False  # skip the random initialisation of weights, to save time


@dataclass(frozen=True)
class StandIn:
    """An argument: a module made of plain `nn.Linear` layers and attributes."""

    linears: Mapping[str, Tensor]  # name -> weight (out, in); no bias
    attributes: Mapping[str, object]


@dataclass(frozen=True)
class DeviceArgument:
    """An argument: a torch.device."""

    name: str


@dataclass(frozen=True)
class Returned:
    """An argument: what an earlier step of the same call returned, or the part of it at a path.

    It never leaves the box.
    """

    step: int
    path: PartPath = ()


@dataclass(frozen=True)
class FollowUp:
    """A further step of a call: the same function, or the same instance, is called once more.

    training: the mode that the instance is put in before it; None: the one that it is in.
    """

    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    training: bool | None = None

    def map(self, change: Callable[[Any], Any]) -> FollowUp:
        """Return the same step with every argument changed in this way."""
        kwargs = {name: change(value) for name, value in self.kwargs.items()}
        return FollowUp(tuple(map(change, self.args)), kwargs, self.training)


@dataclass(frozen=True)
class Call:
    """Call `subject` (a function's name, or a module to build) once or more, and report.

    returns: the form of what each step returns; None: one tensor. The reply has an output for each
        leaf of it.
    then: the steps that follow the first, in which an argument may be what an earlier one returned.
    A call with its steps is complete in itself: it starts with a fresh instance, so that anybody
    can answer it anew, a mutant as well as an attempt.

    cotangent: if given, gradients of (output * cotangent).sum() are reported for every
    floating-point tensor argument ("args.0", of a later step "then.0.args.0") and every parameter
    (by its name). A tuple has one for each of the first outputs of the call; None for those that do
    not count.
    second: also the gradient of the sum of squares of the arguments' gradients
    ("second.args.0"), which a fused kernel cannot compute.
    around: a source text of the check's own that defines `around(subject, build)`, and may use
    `is_same`. It returns a context manager, in which the call is made. build: of a class of the
    attempt and its arguments, another module without random weights.
    """

    subject: str | Build
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    cotangent: Tensor | tuple[Tensor | None, ...] | None = None
    second: bool = False
    runs: int = 1  # how often the whole call is made, to see what is kept, and what dropout does
    seed: int = 0  # of the random numbers that the attempt draws
    watch: bool = False  # report which operations ran
    only_build: bool = False  # build the subject and report on it, without calling it
    # dropout is active: only the check judges the values, they are never compared with a mutant's
    random: bool = False
    # the judge casts to it; None: float64, or float32 if the attempt cannot do that
    dtype: str | None = None
    autocast: str | None = None  # "float16" or "bfloat16": the dtype of torch.autocast
    arrays: bool = False  # the attempt is given an ndarray in place of each tensor
    memory: bool = False  # report the call's peak memory
    around: str = ""
    # move the tensors there before the call; they are sent as CPU tensors
    device: str | None = None
    returns: Form | None = None
    then: tuple[FollowUp, ...] = ()

    @property
    def form(self) -> Form:
        """The form of what each step returns."""
        return self.returns or ONE

    @property
    def steps(self) -> tuple[FollowUp, ...]:
        """All steps, the first one included."""
        return (FollowUp(self.args, self.kwargs), *self.then)

    @property
    def arguments(self) -> dict[str, object]:
        """What all steps are given, by its name in reports: "args.0", "kwargs.x",
        "then.0.args.1".
        """
        arguments: dict[str, object] = {}
        for number, step in enumerate(self.steps):
            prefix = f"then.{number - 1}." if number else ""
            arguments |= {f"{prefix}args.{index}": value for index, value in enumerate(step.args)}
            arguments |= {f"{prefix}kwargs.{name}": value for name, value in step.kwargs.items()}
        return arguments

    @property
    def inputs(self) -> tuple[object, ...]:
        """The subject, and what all steps are given."""
        return (self.subject, *self.arguments.values())

    @property
    def outputs(self) -> int:
        """How many outputs a complete reply has."""
        return 0 if self.only_build else self.runs * len(self.steps) * self.form.count

    @property
    def cotangents(self) -> tuple[Tensor | None, ...]:
        """The cotangents of the first outputs; none where no gradients are asked."""
        if self.cotangent is None:
            return ()
        return self.cotangent if isinstance(self.cotangent, tuple) else (self.cotangent,)

    def map(self, change: Callable[[Any], Any]) -> Call:
        """Return the same call with every argument of every step changed in this way."""
        return self.with_steps(tuple(step.map(change) for step in self.steps))

    def with_steps(self, steps: tuple[FollowUp, ...]) -> Call:
        """Return the same call with other steps."""
        return replace(self, args=steps[0].args, kwargs=steps[0].kwargs, then=steps[1:])


@dataclass(frozen=True)
class TraceCall:
    """Execute a call and record its operations, to show them to the student.

    The answer is a Traced.

    crop: how many numbers of each operation's output are sent, along its last axes; empty means
        none.
    times: for how many runs of the same step they are sent.
    """

    call: Call
    crop: tuple[int, ...] = ()
    times: int = 1


@dataclass(frozen=True)
class Batch:
    """`count` messages follow.

    Their answers are sent together: one length for all of them, then each with its own.
    """

    count: int


@dataclass(frozen=True)
class InitModel:
    """Build a small language model with the module `attention` in each block.

    text: (N,) uint8, the tokens to train on.
    """

    attention: Build
    vocabulary: int
    text: Tensor


@dataclass(frozen=True)
class TrainStep:
    """Train on one batch. The answer is a Reply whose output is the loss before the step."""


@dataclass(frozen=True)
class Write:
    """Write `count` tokens after the prompt. The answer is a Reply whose output they are."""

    prompt: Tensor
    count: int


Training = InitModel | TrainStep | Write
Message = Load | Part | Call | TraceCall | Training

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
