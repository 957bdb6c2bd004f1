"""The interface through which checks ask an attempt, the reference or a mutant.

A check is written once, in float64, against an `Implementation`. Its `Runner` decides
where calls are executed (in the box or in the judge) and in which dtype.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from ..box.worker.answers import ModuleFacts, Raised, Reply
from ..box.worker.execute import execute
from ..box.worker.messages import Build, Call, Entries
from .cast import cast
from .sanitize import kind_name


class CheckFailed(AssertionError):
    """The attempt does not do what the check asks. `str()` is the evidence.

    suspect: the misconception that this failure proves by itself, whatever else is wrong with the attempt.
    expected: sizes that the evidence states as right.
    """

    def __init__(self, evidence: str, suspect: str = "", expected: Sequence[int] = ()) -> None:
        super().__init__(evidence)
        self.suspect = suspect
        self.expected = tuple(expected)


class AttemptRaised(CheckFailed):
    """The attempt raised an exception in place of an answer."""

    def __init__(self, raised: Raised) -> None:
        super().__init__(raised.type)
        self.raised = raised


class Runner(Protocol):
    """Executes calls."""

    @property
    def device(self) -> str:
        """The device of its computations: "cpu" or "cuda"."""

    def execute(self, call: Call) -> Reply:
        """The reply to a call whose tensors are float64. Raises AttemptEnded if the process ends."""


@dataclass(frozen=True)
class Answer:
    """A call and its reply, with accessors for checks."""

    call: Call
    reply: Reply

    @property
    def output(self) -> Tensor:
        """The output of the first run, in float64 unless it is bool or integer. Raises CheckFailed."""
        return self.outputs[0]

    @property
    def outputs(self) -> list[Tensor]:
        """The outputs of all runs. Raises CheckFailed if one is not a plain tensor or number."""
        self.must_return()
        for out in self.reply.outputs:
            if out.tensor is None:
                got = "one on the meta device, without numbers" if out.device == "meta" else kind_name(out.kind)
                raise CheckFailed(f"a tensor was expected; yours returned {got}")
        return [_wide(out.tensor) for out in self.reply.outputs if out.tensor is not None]

    @property
    def dtype(self) -> str:
        """The dtype of the output as the attempt returned it, for example "float32"."""
        self.must_return()
        return self.reply.outputs[0].dtype or self.reply.outputs[0].kind

    @property
    def device(self) -> str:
        """The device of the output as the attempt returned it."""
        self.must_return()
        return self.reply.outputs[0].device or ""

    @property
    def kind(self) -> str:
        """What was returned: "tensor", or the type's name."""
        self.must_return()
        return self.reply.outputs[0].kind

    @property
    def returned(self) -> str:
        """`kind` in words that may be shown: "a tensor", "None", "an object of another type"."""
        return kind_name(self.kind)

    @property
    def module(self) -> ModuleFacts:
        """The facts of the first module that the call built. Raises CheckFailed if it built none."""
        if not self.reply.modules:
            self.must_return()
            raise CheckFailed("no module was built")
        return self.reply.modules[0]

    @property
    def raised(self) -> Raised | None:
        """The attempt's exception."""
        return self.reply.raised

    @property
    def message(self) -> str:
        """The message of the attempt's exception, for matching only; empty if there is none."""
        return "" if self.reply.raised is None else self.reply.raised.message

    def gradient(self, name: str) -> Tensor | None:
        """The gradient of "args.0" or of a parameter; None if it has none."""
        self.must_return()
        found = self.reply.gradients.get(name)
        return None if found is None else _wide(found)

    def must_return(self) -> None:
        """Raise AttemptRaised if the attempt raised."""
        if self.reply.raised is not None:
            raise AttemptRaised(self.reply.raised)


@dataclass(frozen=True)
class Implementation:
    """Calls functions and modules by name: `attempt.call("attend", q, k, v)`, `attempt.module("CausalAttention", 4, 6, 8)`.

    `asking` sets fields of `Call` for all calls of the result: `attempt.asking(cotangent=g, runs=2).call(...)`.
    """

    runner: Runner
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def device(self) -> str:
        """The device on which the attempt is graded: "cpu" or "cuda"."""
        return self.runner.device

    def asking(self, **options: Any) -> Implementation:
        """The same implementation, with these fields set in every `Call`."""
        return Implementation(self.runner, {**self.options, **options})

    def call(self, name: str, *args: Any, **kwargs: Any) -> Answer:
        """Call a function."""
        return self.ask(Call(name, _plain_arguments(args), kwargs, **self.options))

    def module(self, target: str, *args: Any, **kwargs: Any) -> Module:
        """Describe a module to build: by default in eval mode, with its own initial weights."""
        return Module(self, Build(target, args, kwargs))

    def ask(self, call: Call) -> Answer:
        """Execute a call."""
        return Answer(call, self.runner.execute(call))


@dataclass(frozen=True)
class Module:
    """The description of a module. Every call builds it anew, so that no call depends on an earlier one."""

    implementation: Implementation
    build: Build

    def asking(self, **options: Any) -> Module:
        """The same module; its calls have these fields of `Call` set."""
        return Module(self.implementation.asking(**options), self.build)

    def loaded(self, state: Mapping[str, Tensor | Entries]) -> Module:
        """With these parameters loaded; parameters that are not named become zero."""
        return self._with(state=dict(state))

    def training(self) -> Module:
        """In training mode."""
        return self._with(training=True)

    def with_attributes(self, **attributes: Any) -> Module:
        """With these attributes set after building."""
        return self._with(attributes={**self.build.attributes, **attributes})

    def reporting(self, *names: str) -> Module:
        """With these attributes reported after the call."""
        return self._with(report=names)

    def adding(self, **values: Tensor) -> Module:
        """With values added to the output, each while the attribute of its name is true."""
        return self._with(added=values)

    def on(self, device: str) -> Module:
        """Moved to a device after building."""
        return self._with(device=device)

    def beside(self, twin: Module) -> Module:
        """With a second module built; `module.alike` says whether the two differ in their weights only."""
        return self._with(twin=twin.build)

    def without_init(self) -> Module:
        """Without random initialisation, to save time if all weights are loaded anyway."""
        return self._with(skip_init=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Answer:
        """Build, then call forward."""
        return self.implementation.ask(Call(self.build, _plain_arguments(args), kwargs, **self.implementation.options))

    def built(self) -> Answer:
        """Build only."""
        return self.implementation.ask(Call(self.build, only_build=True, **self.implementation.options))

    def _with(self, **changes: Any) -> Module:
        return Module(self.implementation, dataclasses.replace(self.build, **changes))


@dataclass(frozen=True)
class LocalRunner:
    """Runs trusted code (the reference, a mutant) in the judge's own process.

    only_values: compute outputs, gradients and exceptions only. The other fields of replies are then not meaningful, and
    a call costs a quarter less.
    """

    namespace: Mapping[str, object]
    device: str = "cpu"
    only_values: bool = False

    def execute(self, call: Call) -> Reply:
        """The reply, computed in the call's dtype, by default float64."""
        return execute(
            self.namespace, cast(call, call.dtype or "float64", self.device), "", only_values=self.only_values
        )


def _plain_arguments(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a.build if isinstance(a, Module) else a for a in args)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor
