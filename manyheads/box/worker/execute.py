"""Answer one Call. The box uses this code for attempts, the judge for references and mutants."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .answers import ModuleFacts, Output, Raised, Reply
from .device import Peak, autocast, on_its_device
from .gradients import gradients_of
from .messages import Build, Call, FollowUp, StandIn
from .modules import Built, build_module, lookup, plain_argument
from .op_monitor import OpMonitor
from .planted import Planted
from .steps import Run, run_steps
from .text import plain, type_name

MESSAGE_LIMIT = 2000  # characters of an exception's message that are sent
BASES_LIMIT = 50  # classes of an exception that are sent
_BASES = type.__dict__["__mro__"].__get__  # past what an attempt's own class says of itself
_TRACEBACK = BaseException.__dict__["__traceback__"].__get__
_OF_A_TEXT = (SyntaxError, IndentationError, TabError)  # which Python raises for a text that it cannot parse
LARGEST_LINE = 2**31 - 1


def execute(
    namespace: Mapping[str, object],
    call: Call,
    source: str,
    around: AbstractContextManager[object] | None = None,
    only_values: bool = False,
) -> Reply:
    """Run the call with the names that the attempt defines, within the context manager `around`.

    source: the attempt's file name, to find its lines in a traceback.
    only_values: leave out the report on modules and on arguments that changed.
    Exceptions of the attempt are in the reply, never raised.
    """
    stage = "build"
    built: list[Built] = []
    outputs: list[Output] = []
    gradients: dict[str, Tensor | None] = {}
    mutated: tuple[str, ...] = ()
    monitor, peak = OpMonitor(call.most_operations) if call.watch else None, Peak() if call.memory else None
    raised = None
    try:
        call = on_its_device(call)
        _seed(call.seed)
        subject = _subject(namespace, call, built)
        steps = [_prepared(namespace, step, call, built) for step in call.steps]
        stage = "call"
        if not call.only_build:
            _seed(call.seed)
            given = [v for step in steps for v in (*step.args, *step.kwargs.values())]
            lower, grad = autocast(call.autocast, given), call.cotangent is not None
            with (
                around or nullcontext(),
                monitor or nullcontext(),
                peak or nullcontext(),
                Planted(*call.planted) if call.planted else nullcontext(),
                lower,
                torch.set_grad_enabled(grad),
            ):
                bound = [_bound(subject, step) for step in steps]
                runs = [run_steps(subject, bound, call.form) for _ in range(call.runs)]
            outputs = [output for run in runs for output in run.outputs()]
            mutated = () if only_values else _changed(call, steps)
            stage = "gradient"
            if call.cotangent is not None:
                with torch.enable_grad():  # as for the call: a file may have switched gradients off for what it prints
                    gradients = _gradients(runs[0], call, steps, built, monitor)
    except BaseException as error:  # a student's SystemExit is an answer too
        raised = raised_by(error, stage, source)
    modules: tuple[ModuleFacts, ...] = ()
    try:
        modules = () if only_values else tuple(b.facts() for b in built)
    except BaseException as error:  # of an attribute that the attempt computes
        raised = raised or raised_by(error, "call", source)
    return Reply(
        outputs=tuple(outputs),
        gradients=gradients,
        raised=raised,
        mutated=mutated,
        modules=modules,
        operations=monitor.operations() if monitor else None,
        peak=peak.bytes if peak else None,
    )


def _seed(seed: int) -> None:
    """Seed as torch.manual_seed does, without the 1.5 ms that it spends on formatting stack traces for absent devices."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def raised_by(error: BaseException, stage: str, source: str) -> Raised:
    """Return the exception as data, whatever its class says of itself. Raises nothing."""
    bases = [base for base in _BASES(type(error)) if base is not object]
    names = tuple(map(type_name, (bases[0], *bases[1:][1 - BASES_LIMIT :])))  # Python's own stand last
    return Raised(names[0], names, _message(error, source), stage, _line(error, source))


def _message(error: BaseException, source: str) -> str:
    """Return its text; "" where a __str__ of the attempt's own raises, in whatever way."""
    try:
        if type(error) in _OF_A_TEXT and error.filename == source:  # type: ignore[attr-defined]
            return plain(str(error.msg), MESSAGE_LIMIT)  # type: ignore[attr-defined]  # without a line of joined cells
        return plain(str(error), MESSAGE_LIMIT)
    except BaseException:
        return ""


def _line(error: BaseException, source: str) -> int | None:
    """Return the innermost line of the attempt's own file."""
    line: object = None
    if type(error) in _OF_A_TEXT and error.filename == source:  # type: ignore[attr-defined]
        line = error.lineno  # type: ignore[attr-defined]
    for frame, number in traceback.walk_tb(_TRACEBACK(error)):
        if str.__eq__(source, frame.f_code.co_filename) is True:
            line = number
    return line if type(line) is int and 0 < line <= LARGEST_LINE else None


def _subject(namespace: Mapping[str, object], call: Call, built: list[Built]) -> Any:
    if isinstance(call.subject, str):
        return lookup(namespace, call.subject)
    built.append(build_module(namespace, call.subject))
    return built[-1].module


def _bound(subject: Any, step: FollowUp) -> FollowUp:
    """Pass keyword arguments by position if a decorator hides the names: functools.wraps keeps them in the signature."""
    if not step.kwargs or not hasattr(subject, "__wrapped__"):
        return step
    bound = inspect.signature(subject).bind(*step.args, **step.kwargs)
    return replace(step, args=tuple(bound.args), kwargs=dict(bound.kwargs))


def _prepared(namespace: Mapping[str, object], step: FollowUp, call: Call, built: list[Built]) -> FollowUp:
    """The step with what the attempt receives."""
    return step.map(lambda value: _argument(namespace, value, call, built))


def _argument(namespace: Mapping[str, object], value: object, call: Call, built: list[Built]) -> object:
    if isinstance(value, Build):
        built.append(build_module(namespace, value))
        return built[-1].module
    if isinstance(value, Tensor):
        value = value.detach().clone()  # a copy, because the judge uses the same tensors again
        return value.requires_grad_(call.cotangent is not None and value.is_floating_point())
    argument = plain_argument(value)
    if isinstance(value, StandIn) and isinstance(argument, torch.nn.Module):
        argument.requires_grad_(call.cotangent is not None)
    return argument


def _changed(call: Call, steps: Sequence[FollowUp]) -> tuple[str, ...]:
    """The names of the arguments that the attempt changed in place."""
    given = call.with_steps(tuple(steps)).arguments
    changed = []
    for name, sent in call.arguments.items():
        now = given[name]
        if isinstance(sent, Tensor) and isinstance(now, Tensor):
            changed += [] if _identical(now.detach(), sent) else [name]
        elif isinstance(sent, StandIn) and isinstance(now, torch.nn.Module):
            weights = {f"{layer}.weight": weight for layer, weight in sent.linears.items()}
            kept = dict(now.named_parameters())
            changed += [
                f"{name}.{k}" for k, w in weights.items() if k not in kept or not _identical(kept[k].detach(), w)
            ]
    return tuple(changed)


def _identical(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return False
    return a.device.type == "meta" or torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


def _gradients(
    run: Run, call: Call, steps: Sequence[FollowUp], built: Sequence[Built], monitor: OpMonitor | None
) -> dict[str, Tensor | None]:
    """The gradients of every argument and every parameter."""
    leaves = run.leaves()
    if monitor:
        for leaf in leaves:
            monitor.inspect_graph(leaf)
    wanted: dict[str, Tensor] = {}
    for name, value in call.with_steps(tuple(steps)).arguments.items():
        if "kwargs." in name:
            continue
        if isinstance(value, Tensor) and value.requires_grad:
            wanted[name] = value
        elif isinstance(value, torch.nn.Module) and type(value).__name__ == "Container":
            wanted.update({f"{name}.{part}": p for part, p in value.named_parameters()})
    for each in built:
        wanted.update({name: p for name, p in each.module.named_parameters() if p.requires_grad})
    return gradients_of(list(zip(leaves, call.cotangents, strict=False)), wanted, call.second)
