"""The interface through which checks ask an attempt, the reference or a mutant, for one call or
several.

A check is written once, in float64, against an `Implementation`. Its `Runner` decides where calls
are executed (in the box or in the judge) and in which dtype.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ..box.worker.answers import Reply
from ..box.worker.execute import execute
from ..box.worker.form import Form, Path
from ..box.worker.messages import Build, Call, Entries, FollowUp, Returned
from .answer import Answer
from .cast import cast

MOST_OUTPUTS = 512  # of one sequence: a reply has room for no more


@dataclass(frozen=True)
class Part:
    """What a call of a sequence will return, or a part of it, to be handed to a later call. It
    holds no data.
    """

    step: int
    form: Form = field(repr=False)
    path: Path = ()

    def __getitem__(self, key: int | str) -> Part:
        """Return a part of it. Raises IndexError or KeyError where none is called so."""
        return replace(self, path=(*self.path, self.form.at(self.path).index_of(key)))


class CallSequence:
    """Calls that are made in one go, when all are listed: so each implementation is asked the same
    ones.

    calls = attempt.module("Counter").sequence()
    first = calls(x)
    calls(y, first["state"])
    one, two = calls.ask()
    """

    def __init__(self, call: Call, execute: Callable[[Call], Reply]) -> None:
        """call: without arguments."""
        self._call, self._execute = call, execute
        self._steps: list[FollowUp] = []
        self._mode: bool | None = None

    def train(self, mode: bool = True) -> None:
        """Put the instance in training mode, or in eval mode, before the next call. Raises
        ValueError before the first one.
        """
        if not self._steps:
            raise ValueError(
                "the mode of the first call is that of the module: module(…).training().sequence()"
            )
        self._mode = mode

    def __call__(self, *args: Any, **kwargs: Any) -> Part:
        """List one more call."""
        step = FollowUp(args, kwargs, self._mode)
        self._steps.append(
            step.map(lambda v: Returned(v.step, v.path) if isinstance(v, Part) else v)
        )
        self._mode = None
        return Part(len(self._steps) - 1, self._call.form)

    def ask(self) -> list[Answer]:
        """Make the calls. Returns the answer to each. Raises ValueError where there are none, or
        too many.
        """
        if not self._steps:
            raise ValueError("a sequence without calls asks nothing")
        call = of_tensors(self._call.with_steps(tuple(self._steps)))
        if call.outputs > MOST_OUTPUTS:
            raise ValueError(
                f"a sequence has at most {MOST_OUTPUTS} outputs; this one has {call.outputs}"
            )
        reply = self._execute(call)
        return [Answer(call, reply, step) for step in range(len(self._steps))]


def of_tensors(call: Call) -> Call:
    """Return a call that is given ndarrays as one with tensors, of which the attempt is given
    ndarrays.
    """
    if not any(isinstance(value, np.ndarray) for value in call.arguments.values()):
        return call
    changed = call.map(
        lambda value: torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
    )
    return replace(changed, arrays=True)


class Runner(Protocol):
    """Executes calls."""

    @property
    def device(self) -> str:
        """The device of its computations: "cpu" or "cuda"."""

    def execute(self, call: Call) -> Reply:
        """Return the reply to a call whose tensors are float64. Raises AttemptEnded if the process
        ends.
        """


@dataclass(frozen=True)
class Implementation:
    """Calls functions and modules by name: `attempt.call("attend", q, k, v)`,
    `attempt.module("CausalAttention", 4, 6, 8)`.

    `asking` sets fields of `Call` for all calls of the result:
    `attempt.asking(cotangent=g, runs=2).call(...)`.

    forms: what functions and classes return, by their names, where that is not one tensor.
    """

    runner: Runner
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    forms: Mapping[str, Form] = dataclasses.field(default_factory=dict)

    @property
    def device(self) -> str:
        """The device on which the attempt is graded: "cpu" or "cuda"."""
        return self.runner.device

    def asking(self, **options: Any) -> Implementation:
        """Return the same implementation, with these fields set in every `Call`."""
        return dataclasses.replace(self, options={**self.options, **options})

    def call(self, name: str, *args: Any, **kwargs: Any) -> Answer:
        """Call a function of the file by its name. Returns the answer."""
        return self.ask(self.call_of(name, args, kwargs))

    def sequence(self, name: str) -> CallSequence:
        """Return several calls of a function, which can be handed what earlier ones returned."""
        return CallSequence(self.call_of(name), self.runner.execute)

    def module(self, target: str, *args: Any, **kwargs: Any) -> Module:
        """Describe a module to build, by the name of its class: in eval mode, with its own initial
        weights, unless said otherwise.

        Example: `attempt.module("CausalAttention", 4, 6, 8).loaded(weights)(x)`
        """
        return Module(self, Build(target, args, kwargs))

    def ask(self, call: Call) -> Answer:
        """Execute a call."""
        call = of_tensors(call)
        return Answer(call, self.runner.execute(call))

    def call_of(
        self,
        subject: str | Build,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Call:
        """Return a call of a function, or of a module's forward."""
        form = self.forms.get(subject if isinstance(subject, str) else subject.target)
        plain = tuple(a.build if isinstance(a, Module) else a for a in args)
        return Call(subject, plain, kwargs or {}, **{"returns": form, **self.options})


@dataclass(frozen=True)
class Module:
    """The description of a module. Every call builds it anew, so that no call depends on an earlier
    one.
    """

    implementation: Implementation
    build: Build

    def asking(self, **options: Any) -> Module:
        """Return the same module; its calls have these fields of `Call` set."""
        return Module(self.implementation.asking(**options), self.build)

    def loaded(self, state: Mapping[str, Tensor | Entries]) -> Module:
        """Return the module with these parameters loaded, by name; parameters that are not named
        become zero.
        """
        return self._with(state=dict(state))

    def training(self) -> Module:
        """Return the module in training mode."""
        return self._with(training=True)

    def with_attributes(self, **attributes: Any) -> Module:
        """Return the module with these attributes set after building."""
        return self._with(attributes={**self.build.attributes, **attributes})

    def reporting(self, *names: str) -> Module:
        """Return the module with these attributes reported after the call."""
        return self._with(report=names)

    def on(self, device: str) -> Module:
        """Return the module, moved to a device after building."""
        return self._with(device=device)

    def without_init(self) -> Module:
        """Return the module without random initialisation, to save time if all weights are loaded
        anyway.
        """
        return self._with(skip_init=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Answer:
        """Build, then call forward. Returns the answer."""
        return self.implementation.ask(self.implementation.call_of(self.build, args, kwargs))

    def sequence(self) -> CallSequence:
        """Return several calls of one instance, which can be handed what earlier ones returned."""
        implementation = self.implementation
        return CallSequence(implementation.call_of(self.build), implementation.runner.execute)

    def built(self) -> Answer:
        """Build only. Returns an answer whose `module` has the facts."""
        return self.implementation.ask(
            Call(self.build, only_build=True, **self.implementation.options)
        )

    def _with(self, **changes: Any) -> Module:
        return Module(self.implementation, dataclasses.replace(self.build, **changes))


@dataclass(frozen=True)
class LocalRunner:
    """Runs trusted code (the reference, a mutant) in the judge's own process.

    only_values: compute outputs, gradients and exceptions only. The other fields of replies are
    then not meaningful, and a call costs a quarter less.
    """

    namespace: Mapping[str, object]
    device: str = "cpu"
    only_values: bool = False

    def execute(self, call: Call) -> Reply:
        """Return the reply, computed in the call's dtype, by default float64."""
        cast_call = cast(call, call.dtype or "float64", self.device)
        return execute(self.namespace, cast_call, "", only_values=self.only_values)
