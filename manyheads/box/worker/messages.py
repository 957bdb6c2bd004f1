"""The messages that the judge sends. The module `answers` has the replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from .form import ONE, Form, Path


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
    path: Path = ()


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
