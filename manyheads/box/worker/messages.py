"""What the judge asks: a Message. `answers` has what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Load:
    """Import this source text as the attempt's module."""

    source: str
    name: str  # the file's name as the student knows it


@dataclass(frozen=True)
class Entries:
    """A tensor that is zero but for a few entries: cheap to send, however large."""

    shape: tuple[int, ...]
    indices: Tensor  # (N, len(shape)), int64
    values: Tensor  # (N,)


@dataclass(frozen=True)
class Build:
    """Make a module: call `target` with the arguments, then load its state by name.

    `target` is a class of the attempt, or a function of it that returns a module.
    Parameters that `state` does not name are set to zero, so that an extra one
    changes no value and is judged on its own; one that holds at most two distinct
    values (ones, zeros and ones) is no random weight and keeps them.
    """

    target: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    state: Mapping[str, Tensor | Entries] | None = None  # None: leave it as constructed
    training: bool = False
    attributes: Mapping[str, object] = field(default_factory=dict)  # set after building
    report: tuple[str, ...] = ()  # attributes to report after the call
    added: Mapping[str, Tensor] = field(
        default_factory=dict
    )  # added to the output while the attribute of that name is true
    dtype: str | None = None
    device: str | None = None
    skip_init: bool = False  # do not spend time on random initial weights
    twin: Build | None = None  # another module to make, and to say whether it is the same but for its weights


@dataclass(frozen=True)
class StandIn:
    """A module of plain `nn.Linear` layers and attributes, given to the attempt as an argument."""

    linears: Mapping[str, Tensor]  # name -> weight (out, in); no bias
    attributes: Mapping[str, object]


@dataclass(frozen=True)
class DeviceArgument:
    """A torch.device as an argument."""

    name: str


@dataclass(frozen=True)
class Call:
    """Call `subject` (a function's name, or a module to build) once or more, and report.

    cotangent: where given, gradients of (output * cotangent).sum() are reported for
    every floating-point tensor argument ("args.0") and every parameter (by its name).
    second: also the gradient of the sum of the squares of those of the arguments
    ("second.args.0"), which a fused kernel cannot give.
    planted: (amount, place): F.scaled_dot_product_attention gives another result, so that two ways to compute the same
    differ by an amount that nobody can guess. `planted.py` says how.
    """

    subject: str | Build
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    cotangent: Tensor | None = None
    second: bool = False
    runs: int = 1
    seed: int = 0
    watch: bool = False  # report which operations ran
    only_build: bool = False  # build the subject and report on it, without calling it
    random: bool = (
        False  # dropout is at work: the values are judged by their check alone, never compared with a mutant's
    )
    dtype: str | None = None  # the judge casts to it; None: float64 where the attempt can do that
    autocast: str | None = None  # "float16" or "bfloat16": the precision that torch.autocast lowers to
    memory: bool = False  # report how much memory the call held at its peak
    planted: tuple[float, float] | None = None
    most_operations: int | None = None  # of a watched call: it is stopped after so many
    device: str | None = None  # its tensors travel as a CPU's, and are moved there before the call


@dataclass(frozen=True)
class TraceCall:
    """Perform a call and follow its operations, for the student's own eyes; the answer is a Traced.

    crop: how many numbers are sent of what each operation gives, along its last axes; none where it is empty.
    times: of how many runs of the same step.
    """

    call: Call
    crop: tuple[int, ...] = ()
    times: int = 1


@dataclass(frozen=True)
class TrainPlan:
    """How a small language model is made and trained. seed: of the first weights and of what it reads, step by step."""

    vocabulary: int
    n_layer: int
    n_embd: int
    block_size: int
    batch: int
    steps: int
    rate: float  # the highest one
    seed: int = 0
    draws: int = 0  # seed of the first weights, apart from that of the reading


@dataclass(frozen=True)
class InitModel:
    """Make a language model whose attention is what `attention` builds, in place of an earlier one.

    text: (N,) uint8, token by token, to learn from; held_out: to examine it on. The answer is a Reply without outputs.
    """

    attention: Build
    plan: TrainPlan
    text: Tensor
    held_out: Tensor


@dataclass(frozen=True)
class TrainSteps:
    """Take so many steps; the answer is a Reply whose output is the loss of each."""

    steps: int


@dataclass(frozen=True)
class Evaluate:
    """The answer is a Reply whose output is the loss on the held-out text, each token predicted from the past alone."""


@dataclass(frozen=True)
class Generate:
    """Go on after these tokens, `count` more; the answer is a Reply whose output they are."""

    prompt: Tensor
    count: int
    seed: int = 0


@dataclass(frozen=True)
class Batch:
    """So many messages follow, whose answers are sent together: one length for all, then each as if alone."""

    count: int


Training = InitModel | TrainSteps | Evaluate | Generate
Message = Load | Call | TraceCall | Training
