"""Put calls to an attempt, a reference or a mutant: in the box or in the judge's process.

A check is written once, in float64, against an `Implementation`. Its `Runner` decides where calls
run and in which dtype. Other runners answer many calls together, or record calls and replies. The
module also imports trusted code, runs it in place of an attempt, and stops it if it does not end
(`must_end`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import signal
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from shlex import quote
from types import FrameType
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ..box.connection import AttemptEnded
from ..box.worker.answer_call import execute
from ..box.worker.messages import (
    Build,
    Call,
    Entries,
    FollowUp,
    Reply,
    Returned,
    StandIn,
    tensors_of,
)
from ..box.worker.result_form import Form, PartPath
from ..files import CourseFault, describe_error, location_of_error
from .answer import Answer, plain
from .explain_exceptions import is_dtype_fault, is_refusal, kind_of


def cast(call: Call, dtype: str, device: str = "cpu") -> Call:
    """Return the call with every floating-point tensor and module in this dtype, for this device.

    A module that states a dtype or a device keeps it. The process that executes the call moves the
    tensors to the device.
    """
    target, elsewhere = getattr(torch, dtype), None if device == "cpu" else device
    changed = map_call(
        call,
        lambda tensor: tensor.to(target) if tensor.is_floating_point() else tensor,
        lambda build: {"dtype": build.dtype or dtype, "device": build.device or elsewhere},
    )
    return changed if elsewhere is None else dataclasses.replace(changed, device=elsewhere)


def round_to_float32(call: Call) -> Call:
    """Return the call with every number rounded to float32, the dtype in which files store it."""
    return map_call(call, lambda t: t.float().double() if t.is_floating_point() else t)


def map_call(
    call: Call,
    tensor: Callable[[Tensor], Tensor],
    build: Callable[[Build], Mapping[str, Any]] = lambda _: {},
) -> Call:
    """Return the call with `tensor` applied to every tensor, and with changed Builds.

    The tensors are the arguments, the cotangents, and the weights of Builds and of StandIns.

    Args:
        call: the call.
        tensor: returns the new tensor for a tensor.
        build: returns the fields to set in a Build.
    """

    def change(value: Any) -> Any:
        if isinstance(value, Tensor):
            return tensor(value)
        if isinstance(value, Build):
            state = None if value.state is None else {k: change(v) for k, v in value.state.items()}
            return dataclasses.replace(value, state=state, **build(value))
        if isinstance(value, StandIn):
            return dataclasses.replace(
                value, linears={k: tensor(w) for k, w in value.linears.items()}
            )
        return (
            tuple(map(change, value))
            if isinstance(value, tuple) and value is call.cotangent
            else value
        )

    subject = change(call.subject)  # must come first: a release draws numbers in this order
    return dataclasses.replace(call.map(change), subject=subject, cotangent=change(call.cotangent))


MOST_OUTPUTS = 512  # outputs of one sequence: a reply has room for no more


@dataclass(frozen=True)
class ReturnedPart:
    """The future result of a call in a sequence, or one of the result's parts.

    It can be an argument of a later call. It holds no data.
    """

    step: int
    form: Form = field(repr=False)
    path: PartPath = ()

    def __getitem__(self, key: int | str) -> ReturnedPart:
        """Return a part of this part. Raises IndexError or KeyError if there is no such part."""
        return replace(self, path=(*self.path, self.form.part_at(self.path).index_of(key)))


class CallSequence:
    """A list of calls that are made together, when the list is complete.

    So every implementation gets the same calls, even if a call needs the result of an earlier one:

        calls = attempt.module("Counter").sequence()
        first = calls(x)
        calls(y, first["state"])
        one, two = calls.ask()
    """

    def __init__(self, call: Call, execute: Callable[[Call], Reply]) -> None:
        """Start an empty list.

        Args:
            call: a call of the function or module, without arguments.
            execute: makes a call and returns its reply.
        """
        self._call, self._execute = call, execute
        self._steps: list[FollowUp] = []
        self._mode: bool | None = None

    def train(self, mode: bool = True) -> None:
        """Put the instance in training mode, or in eval mode, before the next call.

        Raises ValueError if there is no earlier call.
        """
        if not self._steps:
            raise ValueError(
                "the mode of the first call is that of the module:"
                " module(…).in_training_mode().sequence()"
            )
        self._mode = mode

    def __call__(self, *args: Any, **kwargs: Any) -> ReturnedPart:
        """Add a call to the list, and return its future result, for arguments of later calls."""
        step = FollowUp(args, kwargs, self._mode)
        self._steps.append(
            step.map(lambda v: Returned(v.step, v.path) if isinstance(v, ReturnedPart) else v)
        )
        self._mode = None
        return ReturnedPart(len(self._steps) - 1, self._call.form)

    def ask(self) -> list[Answer]:
        """Make the calls, and return the answer to each.

        Raises ValueError if there are no calls, or too many.
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
    """Return the call with tensors in place of its ndarrays, or the same call if it has none.

    The field `arrays` is set, so that the attempt gets an ndarray in place of every tensor.
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
        """Return the reply to a call whose tensors are float64.

        Raises AttemptEnded if the process ends.
        """


@dataclass(frozen=True)
class Implementation:
    """Calls functions and builds modules, as attributes of the file that a student wrote.

    With a lower-case first letter, the attribute is a function: `attempt.attend(q, k, v)`. With a
    capital first letter, it is a class: `attempt.Attention(4, 6, 8).with_parameters(weights)(x)`
    builds the module and calls it. `call` and `module` are for names in a variable, and for names
    that do not follow this rule.

    `with_options` sets fields of `Call` for all calls of the result, as in
    `attempt.with_options(cotangent=g, runs=2).attend(q, k, v)`.
    """

    runner: Runner
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    # the results' forms of functions and classes, by name; other results are one tensor
    forms: Mapping[str, Form] = dataclasses.field(default_factory=dict)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function that calls the file's function of this name, or describes its module.

        A capital first letter means a class, as in PEP 8. The attempt itself is not asked, so the
        call is the same for every attempt. Names with a "_" in front raise AttributeError, because
        Python and pytest look for some of these in every object.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self.module if name[0].isupper() else self.call, name)

    @property
    def device(self) -> str:
        """The device on which the attempt is graded: "cpu" or "cuda"."""
        return self.runner.device

    def with_options(self, **options: Any) -> Implementation:
        """Return the same implementation, with these fields set in every `Call`."""
        return dataclasses.replace(self, options={**self.options, **options})

    def call(self, name: str, *args: Any, **kwargs: Any) -> Answer:
        """Call a function of the file by its name, and return the answer.

        Answers can be arguments: `attempt.merge_heads(attempt.split_heads(x, n_head))`.

        Example: `attempt.call(name, q, k, v)` in a loop over names.
        """
        return self.ask(self.call_of(name, args, kwargs))

    def sequence(self, name: str) -> CallSequence:
        """Return an empty sequence of calls of a function. Later calls can use earlier results."""
        return CallSequence(self.call_of(name), self.runner.execute)

    def module(self, target: str, *args: Any, **kwargs: Any) -> ImplementationModule:
        """Return the description of a module to build, by the name of its class.

        The module is in eval mode and has its own initial weights, unless they are changed.

        Example: `attempt.module(name, 4, 6, 8).with_parameters(weights)(x)` in a loop over names.
        """
        return ImplementationModule(self, Build(target, args, kwargs))

    def ask(self, call: Call) -> Answer:
        """Execute a call, and return the answer."""
        call = of_tensors(call)
        return Answer(call, self.runner.execute(call))

    def call_of(
        self,
        subject: str | Build,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Call:
        """Return a call of a function, or of a module's forward, with the options set.

        Modules and answers among the arguments are replaced by their Builds and outputs.
        """
        form = self.forms.get(subject if isinstance(subject, str) else subject.target)
        arguments = [a.build if isinstance(a, ImplementationModule) else plain(a) for a in args]
        keywords = {name: plain(value) for name, value in (kwargs or {}).items()}
        return Call(subject, tuple(arguments), keywords, **{"returns": form, **self.options})


@dataclass(frozen=True)
class ImplementationModule:
    """The description of a module.

    To build a module, load weights into it and call it once:
    `y = attempt.CausalAttention(4, 6, 8).with_parameters(weights)(x)`. The arguments after the
    class's name are those of its constructor; the last pair of brackets calls forward.

    Every call builds the module anew, so that no call depends on an earlier one.
    """

    implementation: Implementation
    build: Build

    def with_options(self, **options: Any) -> ImplementationModule:
        """Return the same module; its calls have these fields of `Call` set."""
        return ImplementationModule(self.implementation.with_options(**options), self.build)

    def with_parameters(self, state: Mapping[str, Tensor | Entries]) -> ImplementationModule:
        """Return the module with these parameters loaded, by name.

        Parameters that are not named become zero.
        """
        return self._with(state=dict(state))

    def in_training_mode(self) -> ImplementationModule:
        """Return the module in training mode."""
        return self._with(training=True)

    def with_attributes(self, **attributes: Any) -> ImplementationModule:
        """Return the module with these attributes set after building."""
        return self._with(attributes={**self.build.attributes, **attributes})

    def reporting_attributes(self, *names: str) -> ImplementationModule:
        """Return the module with these attributes, and no others, reported after the call."""
        return self._with(report=names)

    def on_device(self, device: str) -> ImplementationModule:
        """Return the module, moved to a device after building."""
        return self._with(device=device)

    def without_init(self) -> ImplementationModule:
        """Return the module without random initialisation.

        This saves time if all weights are loaded anyway.
        """
        return self._with(skip_init=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Answer:
        """Build the module, call its forward, and return the answer."""
        return self.implementation.ask(self.implementation.call_of(self.build, args, kwargs))

    def sequence(self) -> CallSequence:
        """Return an empty sequence of calls of one instance. Later calls can use results."""
        implementation = self.implementation
        return CallSequence(implementation.call_of(self.build), implementation.runner.execute)

    def build_only(self) -> Answer:
        """Build the module without calling it, and return an answer with its facts in `module`.

        A check that builds a module must also call one, because it passes only on answers.
        """
        return self.implementation.ask(
            Call(self.build, only_build=True, **self.implementation.options)
        )

    def _with(self, **changes: Any) -> ImplementationModule:
        return ImplementationModule(self.implementation, dataclasses.replace(self.build, **changes))


@dataclass(frozen=True)
class LocalRunner:
    """Runs trusted code (the reference, a mutant) in the judge's process."""

    namespace: Mapping[str, object]
    device: str = "cpu"
    # Compute only outputs, gradients and exceptions. The other fields of replies are then not
    # meaningful, and a call costs a quarter less.
    only_values: bool = False

    def execute(self, call: Call) -> Reply:
        """Return the reply, computed on `device` in the call's dtype, by default float64."""
        cast_call = cast(call, call.dtype or "float64", self.device)
        return execute(self.namespace, cast_call, "", only_values=self.only_values)


def target_of(call: Call) -> str:
    """Return the name of the function that is called, or of the class that is built."""
    return call.subject.target if isinstance(call.subject, Build) else call.subject


@dataclass(frozen=True)
class CheckQuestion:
    """A call, and the id of the check that makes it."""

    check: str
    call: Call


@dataclass(frozen=True)
class Exchange:
    """A call as the check wrote it, and the reply."""

    check: str
    call: Call
    reply: Reply


class BatchRunner(Runner, Protocol):
    """A runner that can execute many calls together."""

    def execute_all(self, questions: Sequence[CheckQuestion]) -> list[Reply | AttemptEnded]:
        """Return a reply to each question, or the AttemptEnded of a call that ended the process."""


class RecordingRunner(BatchRunner, Protocol):
    """A runner for an attempt, or for trusted code in its place, that records its exchanges."""

    check: str  # the id of the check that calls `execute`
    transcript: list[Exchange]


def changes_in(reply: Reply) -> int:
    """Return how often the reply's tensors have been changed in place, in total.

    If the number grows while a check runs, the check has changed the reply.
    """
    return sum(tensor._version for tensor in tensors_of(reply))


def bytes_of(reply: Reply) -> int:
    """Return the size of the reply's tensors, in bytes."""
    return sum(tensor.nbytes for tensor in tensors_of(reply))


class LocalRecordingRunner:
    """Runs the reference or a mutant in the judge's process, and records the exchanges.

    It behaves like a runner for an attempt.
    """

    def __init__(self, namespace: Mapping[str, object], device: str = "cpu") -> None:
        self.check = ""
        self.device = device
        self.transcript: list[Exchange] = []
        self.ended: dict[str, Call] = {}  # trusted code ends no process
        self.in_single: set[int] = set()  # empty: no call uses float32 because of another call
        self._runner = LocalRunner(namespace, device)

    def execute(self, call: Call) -> Reply:
        """Return the reply, and record it.

        As for an attempt, it is computed in float32 if float64 raises.
        """
        reply = reply_in_default_dtype(self._runner, call, self._runner.execute(call))
        self.transcript.append(Exchange(self.check, call, reply))
        return reply

    def execute_all(self, questions: Sequence[CheckQuestion]) -> list[Reply | AttemptEnded]:
        """Execute and record one question after the other, and return their replies."""
        replies: list[Reply | AttemptEnded] = []
        for question in questions:
            self.check = question.check
            replies.append(self.execute(question.call))
        return replies


def reply_in_default_dtype(runner: Runner, call: Call, reply: Reply) -> Reply:
    """Return the reply to the call in float64, or in float32 if a dtype made float64 raise.

    The call is made in float32 if it states no dtype, and if it raised an exception that is about
    dtypes or of no known kind, but no refusal. The new reply is returned if it is without an
    exception, or if the exception in float64 was about dtypes. An attempt is asked in the same way.

    Args:
        runner: executes the call in float32.
        call: the call.
        reply: the reply to the call in float64.
    """
    raised = reply.raised
    exception_kind = kind_of(raised) if raised else None
    if (
        call.dtype is None
        and raised
        and not is_refusal(raised)
        and (exception_kind is None or "dtype" in exception_kind.meaning)
    ):
        in_single = runner.execute(dataclasses.replace(call, dtype="float32"))
        if in_single.raised is None or is_dtype_fault(raised):
            return in_single
    return reply


class BrokenReference(CourseFault):
    """A reference cannot be imported. The text names the file and the error."""


@lru_cache(maxsize=256)
def namespace_of(path: Path) -> Mapping[str, object]:
    """Run a trusted source file, and return the names that it defines.

    Its `__main__` part does not run. The file may import its neighbours: `from ._shared import
    softmax`. A file runs once: later calls return the same names. Raises BrokenReference.
    """
    return namespace_of_source(path.read_text(encoding="utf-8"), path)


def namespace_of_source(trusted_text: str, path: Path) -> Mapping[str, object]:
    """Run a trusted text as the file at `path`, and return the names that it defines.

    Raises BrokenReference if the text raises an exception.
    """
    module = types.ModuleType(f"{_package_of(path.parent)}.{path.stem}")
    module.__file__ = str(path)
    module.__package__ = module.__name__.rpartition(".")[0]
    sys.modules[module.__name__] = module  # dataclasses look up their module here
    try:
        exec(compile(trusted_text, str(path), "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        raise BrokenReference(_why_broken(path, error)) from error
    return vars(module)


def _why_broken(path: Path, error: BaseException) -> str:
    """Return a sentence with the file, the line and the error, and the next step."""
    # The error may be in another file of the folder, which this one imports.
    location = location_of_error(error, lambda file: file.parent == path.parent)
    if location is None:
        return f"{path}: {describe_error(error)}. Next: python {quote(str(path))}"
    file, line = location
    return f"{file}:{line}: {describe_error(error)}. Next: mend that line, then course verify"


def _package_of(folder: Path) -> str:
    """Make a package whose modules are the files of this folder, and return its name.

    The name depends on the folder, so each course has different packages.
    """
    name = f"trusted_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


# CPU time of trusted code. The slowest of 266 mutants of this repository's course needs 1.9 s,
# with its checks.
MAX_SECONDS = 30.0
# Seconds between further interruptions, because each following call may have the same loop.
_SECONDS_BETWEEN_STOPS = 0.01


class DoesNotEnd(CourseFault):
    """Trusted code computes for longer than the limit.

    Attributes:
        observation: the end of a sentence about the code, for example "does not end: …".
    """

    def __init__(self, label: str, observation: str, next_step: str) -> None:
        super().__init__(f"{label} {observation}. Next: {next_step}")
        self.observation = observation


@contextmanager
def must_end(label: str, path: Path, next_step: str) -> Iterator[None]:
    """Raise DoesNotEnd if the block computes for more than MAX_SECONDS.

    Only the process's own CPU time counts, so code is not stopped because the machine is busy. At
    the limit, a TimeoutError is raised in the block, again and again. DoesNotEnd is raised even if
    the code catches it. The block must run in the main thread.

    Windows has no such timers, and so no limit.

    Args:
        label: the name of the code that runs in the block, with which a sentence begins.
        path: the file name with which the code was compiled. The message names a line in this file.
        next_step: the text after "Next: ".
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    stopped_at = list[int]()

    def stop(_: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code.co_filename != str(path):
            frame = frame.f_back
        stopped_at.append(0 if frame is None else frame.f_lineno)
        # The engine takes this exception for a reply of the code, so `stopped_at` records it, too.
        raise TimeoutError

    previous_handler = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS, _SECONDS_BETWEEN_STOPS)
    try:
        yield
    except Exception:
        if not stopped_at:
            raise
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous_handler)
    if stopped_at:
        line = stopped_at[0]
        location = f" on line {line} of {path.name}" if line else ""
        raise DoesNotEnd(
            label, f"does not end: it still computes{location} after {MAX_SECONDS:g} s", next_step
        )
