"""Answer one Call. The box uses this code for attempts, the judge for references and mutants."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor

from .answers import Output, Raised, Reply, dtype_name
from .device import Peak, autocast, on_its_device
from .messages import Build, Call, StandIn
from .modules import Built, build_module, lookup, plain_argument
from .op_monitor import OpMonitor
from .planted import Planted
from .wire import bare

MESSAGE_LIMIT = 2000  # characters of an exception's message that are sent


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
        args = [_argument(namespace, a, call, built) for a in call.args]
        kwargs = {k: _argument(namespace, v, call, built) for k, v in call.kwargs.items()}
        stage = "call"
        if not call.only_build:
            _seed(call.seed)
            lower, grad = autocast(call.autocast, (*args, *kwargs.values())), call.cotangent is not None
            with (
                around or nullcontext(),
                monitor or nullcontext(),
                peak or nullcontext(),
                Planted(*call.planted) if call.planted else nullcontext(),
                lower,
                torch.set_grad_enabled(grad),
            ):
                positional, named = _bound(subject, args, kwargs)
                results = [subject(*positional, **named) for _ in range(call.runs)]
            outputs = [_output(result) for result in results]
            mutated = () if only_values else _changed(call, args, kwargs)
            stage = "gradient"
            if call.cotangent is not None:
                if monitor:
                    monitor.inspect_graph(results[0])
                gradients = _gradients(results[0], call, args, built)
    except BaseException as error:  # a student's SystemExit is an answer too
        raised = raised_by(error, stage, source)
    return Reply(
        outputs=tuple(outputs),
        gradients=gradients,
        raised=raised,
        mutated=mutated,
        modules=() if only_values else tuple(b.facts() for b in built),
        operations=monitor.operations() if monitor else None,
        peak=peak.bytes if peak else None,
    )


def _seed(seed: int) -> None:
    """Seed as torch.manual_seed does, without the 1.5 ms that it spends on formatting stack traces for absent devices."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def raised_by(error: BaseException, stage: str, source: str) -> Raised:
    """The exception as data."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == source else None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == source:
            line = number
    try:
        message = str(error)[:MESSAGE_LIMIT]
    except Exception:  # the student's own __str__ may raise
        message = ""
    bases = tuple(base.__name__ for base in type(error).__mro__ if base is not object)
    return Raised(type(error).__name__, bases, message, stage, line)


def _subject(namespace: Mapping[str, object], call: Call, built: list[Built]) -> Any:
    if isinstance(call.subject, str):
        return lookup(namespace, call.subject)
    built.append(build_module(namespace, call.subject))
    return built[-1].module


def _bound(subject: Any, args: list[object], kwargs: dict[str, object]) -> tuple[list[object], dict[str, object]]:
    """Pass keyword arguments by position if a decorator hides the names: functools.wraps keeps them in the signature."""
    if not kwargs or not hasattr(subject, "__wrapped__"):
        return args, kwargs
    bound = inspect.signature(subject).bind(*args, **kwargs)
    return list(bound.args), dict(bound.kwargs)


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


def _changed(call: Call, args: list[object], kwargs: Mapping[str, object]) -> tuple[str, ...]:
    """The names of the arguments that the attempt changed in place."""
    pairs = [(f"args.{i}", *pair) for i, pair in enumerate(zip(call.args, args, strict=True))]
    pairs += [(f"kwargs.{name}", sent, kwargs[name]) for name, sent in call.kwargs.items()]
    changed = []
    for name, sent, given in pairs:
        if isinstance(sent, Tensor) and isinstance(given, Tensor):
            changed += [] if _identical(given.detach(), sent) else [name]
        elif isinstance(sent, StandIn) and isinstance(given, torch.nn.Module):
            weights = {f"{layer}.weight": weight for layer, weight in sent.linears.items()}
            now = dict(given.named_parameters())
            changed += [f"{name}.{k}" for k, w in weights.items() if k not in now or not _identical(now[k].detach(), w)]
    return tuple(changed)


def _identical(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return False
    return a.device.type == "meta" or torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


def _output(result: object) -> Output:
    if issubclass(type(result), Tensor):  # isinstance would call the object's __class__
        value = bare(cast("Tensor", result))
        dtype, device, shape = dtype_name(value.dtype), value.device.type, tuple(value.shape)
        if value.layout is not torch.strided or value.is_quantized or value.is_complex() or value.is_nested:
            return Output(f"{str(value.layout).removeprefix('torch.')} {dtype} tensor")
        return Output("tensor", None if value.device.type == "meta" else value.cpu().clone(), dtype, device, shape)
    if isinstance(result, bool | int | float):
        return Output(type(result).__name__, torch.tensor(float(result), dtype=torch.float64), shape=())
    return Output(type(result).__name__)


def _gradients(result: object, call: Call, args: list[object], built: list[Built]) -> dict[str, Tensor | None]:
    wanted = {f"args.{i}": a for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad}
    for place, value in enumerate(args):
        if type(value).__name__ == "Container" and isinstance(value, torch.nn.Module):
            wanted.update({f"args.{place}.{name}": p for name, p in value.named_parameters()})
    for each in built:
        wanted.update({name: p for name, p in each.module.named_parameters() if p.requires_grad})
    cotangent = call.cotangent
    if not isinstance(result, Tensor) or cotangent is None or result.shape != cotangent.shape:
        return {}
    if not result.requires_grad:
        return dict.fromkeys(wanted)
    # grad() of a scalar: with grad_outputs torch imports sympy, which costs 180 ms in every fresh process.
    total = (result * cotangent.to(result.dtype)).sum()
    found = torch.autograd.grad(total, list(wanted.values()), allow_unused=True, create_graph=call.second)
    gradients: dict[str, Tensor | None] = dict(zip(wanted, found, strict=True))
    if call.second:
        of_args = {name: g for name, g in gradients.items() if name.startswith("args.") and g is not None}
        squares = torch.stack([(g * g).sum() for g in of_args.values()]).sum()
        twice = torch.autograd.grad(squares, [wanted[name] for name in of_args], allow_unused=True)
        gradients.update({f"second.{name}": g for name, g in zip(of_args, twice, strict=True)})
    return {name: None if g is None else g.detach().cpu() for name, g in gradients.items()}
