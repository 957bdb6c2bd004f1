"""The messages between judge and worker in both directions, and text of bounded length in them.

The judge sends a Load, a Call, a TraceCall, or a message of training or of blocks. The worker
answers with a Reply or a Traced. The annotation of a field bounds its value on the wire:
`manyheads.box.replies` reads nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args

import torch
from torch import Tensor

from .result_form import ONE, Form, PartPath, read_misfit

NAME_LIMIT = 200  # characters of the name of a type, a parameter or an attribute
WORDS_LIMIT = 4000  # characters of any other text
_NAME = type.__dict__["__name__"].__get__  # ignores a __name__ that a metaclass defines


def plain(text: str, limit: int) -> str:
    r"""Return the first `limit` characters of the text, with lone surrogates written as \udce9."""
    start = str.__getitem__(text, slice(limit))
    return start if start.isascii() else start.encode("utf-8", "backslashreplace").decode()[:limit]


def type_name(type_: type) -> str:
    """Return the name of a type, without its module, cut at NAME_LIMIT."""
    return plain(_NAME(type_), NAME_LIMIT)


@dataclass(frozen=True)
class Load:
    """Import this source text as the attempt's module.

    The text runs as parts: the statements of its top level, one after the other. A part that raises
    does not stop the parts below it.

    Attributes:
        source: the text.
        name: the file's name as the student knows it.
        cells: the line at which each cell of a notebook begins; empty for a script. A cell that
            cannot be parsed is one part.
        skipped: the numbers of parts that are not run, counted from 0.
        stepwise: run nothing yet, and reply with the line at which each part begins. Afterwards one
            Part message runs each part.
    """

    source: str
    name: str
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

    `target` is a class of the attempt, or one of its functions that returns a module. If `state` is
    given, parameters that it does not name are set to zero, so that an extra parameter changes no
    value and is judged by itself. A parameter with at most two distinct values (ones; zeros and
    ones) is not a random weight and keeps its values.
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
    """An argument: a module in eval mode, made of plain `nn.Linear` layers and attributes."""

    linears: Mapping[str, Tensor]  # name -> weight (out, in); no bias
    attributes: Mapping[str, object]


@dataclass(frozen=True)
class DeviceArgument:
    """An argument: a torch.device."""

    name: str


@dataclass(frozen=True)
class Returned:
    """An argument: the result of an earlier step of the same call, or the part at a path in it.

    The result itself never leaves the box.
    """

    step: int
    path: PartPath = ()


@dataclass(frozen=True)
class FollowUp:
    """A further step of a call: the same function, or the same instance, is called once more."""

    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    training: bool | None = None  # the mode to set before this step; if None, it is unchanged

    def map(self, change: Callable[[Any], Any]) -> FollowUp:
        """Return the same step with every argument changed in this way."""
        kwargs = {name: change(value) for name, value in self.kwargs.items()}
        return FollowUp(tuple(map(change, self.args)), kwargs, self.training)


@dataclass(frozen=True)
class Ones:
    """A tensor of ones, as an argument of the first call in `MovedAfterACall`.

    Attributes:
        shape: the shape of the tensor.
        dtype: the name of its dtype. None: the dtype of the module's weights.
    """

    shape: tuple[int, ...]
    dtype: str | None = None


@dataclass(frozen=True)
class MovedAfterACall:
    """Call the module once, and move it to the meta device, before the call itself is made.

    A tensor that the module keeps from the first call has to move, too. `moved_after_a_call` in
    manyheads/checks/module_expectations.py makes one from tensors.

    Attributes:
        args: the arguments of the first call.
    """

    args: tuple[Ones, ...]


@dataclass(frozen=True)
class ComparedWithModule:
    """Compare the module with another one, and report the result as an attribute of the module.

    The subject must be built on the meta device, and its Build must report the attribute. The two
    are the same if one class makes them with the same attributes, apart from their weights. The
    subject may have further attributes. It may also be an instance of a subclass that replaces only
    `__init__` and the printed form. Attributes that cannot be compared count as equal.

    Attributes:
        target: the name of the class or function that makes the other module, without random
            weights.
        args: the arguments of `target`.
        attribute: the name of the attribute that reports the result.
        report: the value of this attribute if the modules are the same; "something else" if not.
    """

    target: str
    args: tuple[object, ...]
    attribute: str
    report: str


@dataclass(frozen=True)
class OperationLimit:
    """Raise GeneratorExit, which no `except Exception` catches, at one call of a torch function.

    A call that takes too long ends in this way.

    Attributes:
        count: the number of the torch function that raises, counted from 1. The worker itself calls
            a few before the attempt does.
    """

    count: int


@dataclass(frozen=True)
class PlantedDifference:
    """Add a known difference to each result of PyTorch's fused attention.

    The difference has another value at each position, and depends on the result. An attempt that
    compares fused attention with a written-out path must report exactly this difference. An attempt
    that guesses a rounding error, looks at one sequence only, or computes with another input
    reports another number.

    Attributes:
        amount: one number of the result gets this amount times 1 to 3, the others at most a
            fortieth of that.
        position: the index of this number as a share of all numbers, from 0 (the first) to below 1.
        flag: the name of an attribute. If given, the difference is added to the output of each
            module while this attribute is true, and not to fused attention.
    """

    amount: float
    position: float
    flag: str = ""


Around = MovedAfterACall | ComparedWithModule | OperationLimit | PlantedDifference


@dataclass(frozen=True)
class Call:
    """Call a function or a module once or more, and report the results.

    A call with its steps is complete in itself: it starts with a fresh instance. So a mutant can
    answer the same call as an attempt, and a process can answer it again.

    Attributes:
        subject: the name of a function, or a module to build.
        cotangent: if given, gradients of (output * cotangent).sum() are reported for every
            floating-point tensor argument ("args.0", or "then.0.args.0" in a later step) and every
            parameter (by its name). A tuple has one cotangent for each of the first outputs of the
            call, or None for an output that does not count.
        second: also report the gradient of the sum of squares of the arguments' gradients
            ("second.args.0"), which a fused kernel cannot compute.
        around: a `MovedAfterACall`, a `ComparedWithModule`, an `OperationLimit` or a
            `PlantedDifference`, each of which does something just before or during the call.
        returns: the form of each step's result, or None for one tensor. The reply has an output for
            each leaf of the form.
        then: the steps after the first. An argument may be the result of an earlier step.
    """

    subject: str | Build
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    cotangent: Tensor | tuple[Tensor | None, ...] | None = None
    second: bool = False
    runs: int = 1  # how often to make the whole call; shows kept state and the effect of dropout
    seed: int = 0  # for the random numbers that the attempt draws
    watch: bool = False  # report which operations ran
    only_build: bool = False  # build the subject and report on it, without calling it
    # Dropout is active: only the check judges the values; they are never compared with a mutant's.
    random: bool = False
    # The judge casts to this dtype. None: float64, or float32 if the attempt raises in float64.
    dtype: str | None = None
    autocast: str | None = None  # "float16" or "bfloat16": the dtype of torch.autocast
    arrays: bool = False  # the attempt is given an ndarray in place of each tensor
    memory: bool = False  # report the call's peak memory
    around: Around | None = None
    # The tensors are sent as CPU tensors, and moved to this device before the call.
    device: str | None = None
    returns: Form | None = None
    then: tuple[FollowUp, ...] = ()

    def __post_init__(self) -> None:
        """Raise TypeError if `around` is an instance of any other class."""
        if self.around is None or isinstance(self.around, Around):
            return
        names = ", ".join(allowed.__name__ for allowed in get_args(Around))
        raise TypeError(f"around must be None or one of {names}; it is {self.around!r}")

    @property
    def form(self) -> Form:
        """The form of each step's result."""
        return self.returns or ONE

    @property
    def steps(self) -> tuple[FollowUp, ...]:
        """All steps, the first one included."""
        return (FollowUp(self.args, self.kwargs), *self.then)

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments of all steps, by name in reports: "args.0", "kwargs.x", "then.0.args.1"."""
        arguments: dict[str, object] = {}
        for number, step in enumerate(self.steps):
            prefix = f"then.{number - 1}." if number else ""
            arguments |= {f"{prefix}args.{index}": value for index, value in enumerate(step.args)}
            arguments |= {f"{prefix}kwargs.{name}": value for name, value in step.kwargs.items()}
        return arguments

    @property
    def inputs(self) -> tuple[object, ...]:
        """The subject, and the arguments of all steps."""
        return (self.subject, *self.arguments.values())

    @property
    def outputs(self) -> int:
        """The number of outputs of a complete reply."""
        return 0 if self.only_build else self.runs * len(self.steps) * self.form.count

    @property
    def cotangents(self) -> tuple[Tensor | None, ...]:
        """The cotangents of the first outputs, or () if the call asks for no gradients."""
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

    Attributes:
        crop: how many numbers of each operation's output to send along its last axes. If empty, no
            numbers are sent.
        times: for how many runs of the same step numbers are sent.
    """

    call: Call
    crop: tuple[int, ...] = ()
    times: int = 1


@dataclass(frozen=True)
class Batch:
    """Announces `count` messages, which are sent right after this one and answered together.

    This is one answer: the total length, then each answer with its own length.
    """

    count: int


@dataclass(frozen=True)
class InitModel:
    """Build a small language model with a module `attention` in each block.

    The answer is an empty Reply, or one with the exception.
    """

    attention: Build
    vocabulary: int
    text: Tensor  # (N,) uint8, the tokens to train on


@dataclass(frozen=True)
class TrainStep:
    """Train on one batch. The answer is a Reply whose output is the loss before the step."""


@dataclass(frozen=True)
class Write:
    """Write `count` tokens after the prompt. The answer is a Reply with these tokens as output."""

    prompt: Tensor
    count: int


Training = InitModel | TrainStep | Write


@dataclass(frozen=True)
class InitBlock:
    """Build a module and keep it as the next block.

    The answer is a Reply with the facts of the module, or with the exception.
    """

    build: Build


@dataclass(frozen=True)
class RunBlock:
    """Call the module of a block. The answer is a Reply with its output.

    Attributes:
        number: the number of the block, counted from 0.
        x: the input.
    """

    number: int
    x: Tensor


Blocks = InitBlock | RunBlock
Message = Load | Part | Call | TraceCall | Training | Blocks

MOST_AXES = 64  # axes of a tensor
TENSOR_LIMIT = 512  # tensors of a reply, or names in one of its mappings
BASES_LIMIT = 50  # classes of an exception that are sent
MADE_LIMIT = 256  # different sizes of new tensors that are reported: the largest ones
SHAPES_LIMIT = 256  # different shapes of new tensors that are reported: the largest ones
KERNELS_LIMIT = 256  # different kernels that are reported
STOPPED_LIMIT = 64  # exceptions of parts that are reported: the first ones
PARTS_LIMIT = 100_000  # parts of a file that is loaded stepwise
LARGEST = 2**63  # bound of the whole numbers that are reported: no tensor holds a larger one
# A trace has at most this many distinct steps, operations in their order, and crops.
STEPS, ORDER, CROPS = 400, 20_000, 512
SIDES, DEPTH = 8, 6  # inputs (or outputs) of a step, and lines that lead to it
ELEMENTS = 16_384  # numbers of a crop
SLICES = 8  # runs of a step whose slices are kept: the first heads of a loop


class Between(NamedTuple):
    """Bounds of a whole number, of the length of a text, list or mapping, or of a tensor's size."""

    minimum: int
    maximum: int


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype: "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


Name = Annotated[str, Between(0, NAME_LIMIT)]
Words = Annotated[str, Between(0, WORDS_LIMIT)]
# Evidence may quote these two. So only torch's own names are allowed, never a text of a student.
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

    Attributes:
        line: the innermost line of the student's file in the traceback, or None.
        part: the line at which the part begins that raised the exception, if this happened while
            the file was loaded.
        in_written: whether a NotImplementedError comes from a function that the student has begun
            to write. The judge finds this in the source text; the worker always sends False.
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
    """The value at one leaf of the result of one step of one run.

    Attributes:
        kind: "tensor", or the name of the value's type, or OPAQUE, or the text of `form.misfit` if
            the result has another structure.
        tensor: the numbers of a plain dense tensor, a number, an ndarray, a list or a text (as
            character codes). None for anything else.
    """

    kind: Name
    tensor: Tensor | None = None
    dtype: Dtype | None = None
    device: DeviceType | None = None
    shape: Shape | None = None

    @property
    def came(self) -> str:
        """The kind of the value, or of the value that came in place of a structure."""
        misfit = read_misfit(self.kind)
        return self.kind if misfit is None else misfit[1]


@dataclass(frozen=True)
class Entry:
    """A parameter or buffer of a module."""

    shape: Shape
    dtype: Dtype
    device: DeviceType


EntriesByName = Annotated[Mapping[Name, Entry], Between(0, TENSOR_LIMIT)]
# The keys are "0", "1", … in order, because no check needs the names, and an attempt chooses names.
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
    # names in the given state for which the module has no matching tensor
    unloaded: Annotated[tuple[Name, ...], Between(0, 64)]
    # values of the reported attributes; a value that is no number or text is the name of its type
    attributes: Annotated[Mapping[Name, Attribute], Between(0, 32)]
    # tensors that are attributes, but neither parameters nor buffers
    plain: EntriesInOrder = field(default_factory=dict)


@dataclass(frozen=True)
class Operations:
    """Which operations ran, as far as they can be observed."""

    fused: bool  # scaled_dot_product_attention or nn.MultiheadAttention was called
    # the largest different sizes of new tensors, in elements, ascending
    made: Annotated[tuple[Size, ...], Between(0, MADE_LIMIT)] = ()
    # an operation took tensors on two devices, which is an error on real devices
    mixed: bool = False
    recorded: bool = False  # autograd recorded a fused operation
    # the largest different shapes of new tensors, by ascending size
    shapes: Annotated[tuple[Shape, ...], Between(0, SHAPES_LIMIT)] = ()
    # the names of PyTorch's own kernels that ran, without overloads: "_softmax", "bmm"
    kernels: Annotated[tuple[KernelName, ...], Between(0, KERNELS_LIMIT)] = ()


@dataclass(frozen=True)
class Reply:
    """The answer to a Load, a Part, a Call, or a message of training or of blocks.

    Attributes:
        mutated: the names of arguments that the call changed in place.
        stopped: the exceptions of parts of the file that did not run to their end.
        peak: bytes allocated beyond those before the call, or None if the device does not report
            this number.
        parts: the line at which each part begins, if this answers a stepwise Load.
    """

    outputs: Annotated[tuple[Output, ...], Between(0, TENSOR_LIMIT)] = ()
    gradients: Annotated[Mapping[Name, Tensor | None], Between(0, TENSOR_LIMIT)] = field(
        default_factory=dict
    )
    raised: Raised | None = None
    mutated: Annotated[tuple[Name, ...], Between(0, 64)] = ()
    modules: Annotated[tuple[ModuleFacts, ...], Between(0, 16)] = ()
    operations: Operations | None = None
    stopped: Annotated[tuple[Raised, ...], Between(0, STOPPED_LIMIT)] = ()
    peak: Size | None = None
    parts: Annotated[tuple[Size, ...], Between(0, PARTS_LIMIT)] = ()


def tensors_of(reply: Reply) -> list[Tensor]:
    """Return the tensors of a reply: those of its outputs, then its gradients."""
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
    """A slice along one axis of a tensor: the indices from `start` to `stop` - 1."""

    axis: Size
    start: Size
    stop: Size


@dataclass(frozen=True)
class Step:
    """One operation of a line. If it runs repeatedly, all runs are one step.

    Attributes:
        lines: the student's lines that lead to the operation, outermost first.
        sites: the bytecode offset in each of these lines.
        inputs: the first input tensors; `input_count` counts all.
        outputs: the first output tensors; `output_count` counts all.
        storage: how the output's memory relates to the inputs; empty if unknown.
        numbers: plain numbers among the arguments.
        crops: a corner of the output, for each of the first runs.
        slices: the slice that each of the first runs takes, if the operation slices an axis.
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
    """The answer to a TraceCall."""

    reply: Reply
    steps: Annotated[tuple[Step, ...], Between(0, STEPS)]
    order: Annotated[tuple[Size, ...], Between(0, ORDER)]  # indices into `steps`, as they ran
    dropped: Size = 0  # how many operations were not recorded
