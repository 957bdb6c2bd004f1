"""Answer one Call, and read its result part by part as the form of the call asks.

The box runs this code for attempts, and the judge runs it for references and mutants. `execute`
builds the modules and arguments, makes the call, converts the results (`outputs_of`), and computes
the gradients. Plain numbers in a result become a tensor; the kind of the output records this.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from .around_call import context_of
from .messages import (
    BASES_LIMIT,
    NAME_LIMIT,
    Build,
    Call,
    FollowUp,
    ModuleFacts,
    Output,
    Raised,
    Reply,
    Returned,
    StandIn,
    dtype_name,
    plain,
    type_name,
)
from .nn_modules import (
    Built,
    Module,
    build_module,
    is_same,
    lookup,
    parameters_of,
    plain_argument,
)
from .op_monitor import OpMonitor
from .result_form import OPAQUE, Form, PartPath, misfit
from .wire import bare

LENGTH_LIMIT = 9  # a tuple or a list of more elements is reported with this length


def outputs_of(result: object, form: Form, depth: int = 0) -> list[Output]:
    """Return an output for each leaf of the form.

    An opaque part has an output without its type or numbers. If a part should be a tuple and is
    not, or has another length, each leaf in it has an output with the text of `misfit`.

    Args:
        result: the attempt's result, or one of its parts.
        form: of this part.
        depth: the length of the path to this part.
    """
    if form.kind == "opaque":
        return [Output(OPAQUE)]
    if form.is_leaf:
        return [output_of(result)]
    elements = _elements_of(result, form)
    if isinstance(elements, str):  # says what the result is in place of the tuple
        return [Output(plain(misfit(depth, elements), NAME_LIMIT))] * form.count
    outputs = []
    for element, part_form in zip(elements, form.parts, strict=True):
        outputs += outputs_of(element, part_form, depth + 1)
    return outputs


def fits(result: object, form: Form) -> bool:
    """Return whether the result has the tuples of the form. The value of a leaf is not examined."""
    if form.is_leaf:
        return True
    elements = _elements_of(result, form)
    return not isinstance(elements, str) and all(map(fits, elements, form.parts))


def part_at(result: object, form: Form, path: PartPath) -> object:
    """Return the part at this path of a result that fits the form."""
    for index in path:
        result = cast("list[object]", _elements_of(result, form))[index]
        form = form.parts[index]
    return result


def leaves_of(result: object, form: Form) -> list[object]:
    """Return the value at each leaf of a result that fits the form."""
    return [part_at(result, form, path) for path, _ in form.leaves()]


def output_of(result: Any) -> Output:
    """Return a result as data: a tensor, numbers, or a text as character codes.

    A tensor is copied to the CPU. A tensor on the meta device has no numbers, and a sparse,
    quantized, complex or nested tensor has only a description. Any other result has only the name
    of its type: for example a list with rows of different lengths.
    """
    if issubclass(type(result), Tensor):  # isinstance would call the object's __class__
        value = bare(result)
        dtype = dtype_name(value.dtype)
        device = value.device.type
        shape = tuple(value.shape)
        if (
            value.layout is not torch.strided
            or value.is_quantized
            or value.is_complex()
            or value.is_nested
        ):
            return Output(f"{str(value.layout).removeprefix('torch.')} {dtype} tensor")
        return Output(
            "tensor",
            None if value.device.type == "meta" else value.cpu().clone(),
            dtype,
            device,
            shape,
        )
    # NumPy's numbers are numbers like Python's own
    if issubclass(type(result), np.integer | np.floating):
        name = "int" if issubclass(type(result), np.integer) else "float"
        return Output(name, torch.tensor(float(result), dtype=torch.float64), shape=())
    if isinstance(result, bool | int | float):
        return Output(
            type_name(type(result)), torch.tensor(float(result), dtype=torch.float64), shape=()
        )
    is_list = type(result) in (list, tuple) and all(
        type(p) in (bool, int, float, list, tuple) for p in result
    )
    if is_list or type(result) in (str, np.ndarray) or issubclass(type(result), np.generic):
        # NumPy raises for rows of different lengths and for elements that are not numbers, and an
        # element may raise itself.
        with suppress(Exception):
            array = np.asarray(list(map(ord, result)) if type(result) is str else result)
            dtype = {"b": "bool", "f": f"float{min(8 * array.itemsize, 64)}"}.get(
                array.dtype.kind, "int64"
            )
            numbers = torch.from_numpy(array.astype(dtype, order="C", casting="same_kind"))
            return Output(
                type_name(type(result)),
                numbers,
                dtype_name(numbers.dtype),
                shape=tuple(numbers.shape),
            )
    return Output(type_name(type(result)))


def _elements_of(result: object, form: Form) -> list[object] | str:
    """Return the elements of a tuple or a list with as many elements as the form has parts.

    For any other result, return the name of its type (`_came`).
    """
    base: Any = tuple if issubclass(type(result), tuple) else list
    elements = list(base.__iter__(result)) if issubclass(type(result), base) else []
    return elements if len(elements) == len(form.parts) else _came(result)


def _came(result: object) -> str:
    """Return the name of the result's type, such as "tensor", "dict" or "tuple of 3"."""
    result_type = type(result)
    if issubclass(result_type, Tensor):
        return "tensor"
    if issubclass(result_type, tuple | list):
        base: Any = tuple if issubclass(result_type, tuple) else list
        length = base.__len__(result)
        return (
            f"{'tuple' if issubclass(result_type, tuple) else 'list'} of"
            f" {min(length, LENGTH_LIMIT)}"
        )
    return "dict" if issubclass(result_type, dict) else type_name(result_type)


# the result of a step that was not taken, because an earlier step returned another structure
UNASKED = "nothing"


@dataclass(frozen=True)
class Run:
    """The results of one run, up to the first step that returned a structure unlike the form.

    Attributes:
        form: the form of each step's result.
        results: the result of each step.
        read: the outputs of all steps but the last. They were copied before the next step was
            taken, because a later step may change them in place.
        steps: the number of steps of the call.
    """

    form: Form
    results: Sequence[object]
    read: Sequence[Output]
    steps: int

    def outputs(self) -> list[Output]:
        """Return an output for each leaf of each step, also of the steps that were not taken."""
        placeholders = [Output(misfit(0, UNASKED))] * (
            (self.steps - len(self.results)) * self.form.count
        )
        return [*self.read, *outputs_of(self.results[-1], self.form), *placeholders]

    def leaves(self) -> list[object]:
        """Return the value at each leaf of each step, up to a step of another structure."""
        return [
            leaf
            for result in self.results
            if fits(result, self.form)
            for leaf in leaves_of(result, self.form)
        ]


def run_steps(subject: Any, steps: Sequence[FollowUp], form: Form) -> Run:
    """Take the steps, until one returns another structure than the form.

    An exception in the attempt's code of any type is passed on.

    Args:
        subject: the function or module to call. A step may change the mode of a module.
        steps: the steps, with arguments of which some may be results of earlier steps.
        form: the form of each step's result.
    """
    results: list[object] = []
    read: list[Output] = []
    for step in steps:
        if results:
            if not fits(results[-1], form):
                break
            read += outputs_of(results[-1], form)
        if step.training is not None:
            subject.train(step.training)
        resolved = step.map(
            lambda v: part_at(results[v.step], form, v.path) if isinstance(v, Returned) else v
        )
        results.append(subject(*resolved.args, **resolved.kwargs))
    return Run(form, results, read, len(steps))


Stage = Literal["load", "build", "call", "gradient"]  # those of `Raised`
MESSAGE_LIMIT = 2000  # characters of an exception's message that are sent
# These read the real attributes, even if a class of the attempt overrides them.
_BASES = type.__dict__["__mro__"].__get__
_TRACEBACK = BaseException.__dict__["__traceback__"].__get__
# Python raises these for a text that it cannot parse.
_OF_A_TEXT = (SyntaxError, IndentationError, TabError)
LARGEST_LINE = 2**31 - 1  # CPython counts lines in a C int; a larger number is an attempt's own


def execute(
    namespace: Mapping[str, object],
    call: Call,
    source: str,
    around: AbstractContextManager[object] | None = None,
    *,
    only_values: bool = False,
) -> Reply:
    """Make the call, and return the reply, which also holds an exception of the attempt.

    The modules and arguments are built, the call is made `call.runs` times, and gradients are
    computed for the first run. An exception in one of these stages prevents the later ones. The
    outputs of a call that raises are not in the reply, but the facts of its modules are. The random
    numbers of torch are seeded before modules are built, and again before the call.

    Args:
        namespace: the names that the attempt defines.
        call: the call.
        source: the attempt's file name, to find its lines in a traceback.
        around: a context manager in which the call is made.
        only_values: leave out the report on modules and on arguments that changed.
    """
    stage: Stage = "build"
    built = list[Built]()
    outputs = list[Output]()
    gradients: dict[str, Tensor | None] = {}
    mutated: tuple[str, ...] = ()
    monitor = OpMonitor() if call.watch else None
    peak = list[int]()
    raised = None
    try:
        call = on_its_device(call)
        _seed(call.seed)
        subject = _subject(namespace, call, built)
        steps = [step.map(partial(_argument, namespace, call, built)) for step in call.steps]
        stage = "call"
        _seed(call.seed)
        values = [v for step in steps for v in (*step.args, *step.kwargs.values())]
        lower = _autocast(call.autocast, values)
        grad = call.cotangent is not None
        with (
            around or nullcontext(),
            monitor or nullcontext(),
            _peak_memory(peak) if call.memory else nullcontext(),
            context_of(call.around, subject, namespace),
            lower,
            torch.set_grad_enabled(grad),
        ):
            bound = [_with_bound_arguments(subject, step) for step in steps]
            runs = [
                run_steps(subject, bound, call.form)
                for _ in range(0 if call.only_build else call.runs)
            ]
        outputs = [output for run in runs for output in run.outputs()]
        mutated = () if only_values else _changed_arguments(call, steps)
        stage = "gradient"
        if runs and call.cotangent is not None:
            # The file may have switched gradients off at its top level, for example for a demo.
            with torch.enable_grad():
                gradients = _gradients(runs[0], call, steps, built, monitor)
    except BaseException as error:  # a student's SystemExit is an answer too
        raised = raised_by(error, stage, source)
    modules: tuple[ModuleFacts, ...] = ()
    try:
        modules = () if only_values else tuple(b.facts() for b in built)
    except BaseException as error:  # an attribute may be a property of the attempt
        raised = raised or raised_by(error, "call", source)
    return Reply(
        outputs=tuple(outputs),
        gradients=gradients,
        raised=raised,
        mutated=mutated,
        modules=modules,
        operations=monitor.operations() if monitor else None,
        peak=next(iter(peak), None),
    )


def _seed(seed: int) -> None:
    """Seed as torch.manual_seed does, but 1.5 ms faster.

    torch.manual_seed formats stack traces for absent devices.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def raised_by(error: BaseException, stage: Stage, source: str) -> Raised:
    """Return the exception as data. Raises nothing, even if the attempt defines its class.

    Args:
        error: the exception.
        stage: the stage in which it was raised.
        source: the attempt's file name, to find its lines in the traceback.
    """
    bases = [base for base in _BASES(type(error)) if base is not object]
    # If there are too many, keep the last ones: Python's own classes are there.
    names = tuple(map(type_name, (bases[0], *bases[1:][1 - BASES_LIMIT :])))
    return Raised(names[0], names, _message(error, source), stage, _line(error, source))


def _message(error: BaseException, source: str) -> str:
    """Return the exception's message, or "" if a `__str__` of the attempt raises."""
    try:
        if type(error) in _OF_A_TEXT and error.filename == source:  # type: ignore[attr-defined]
            # `str(error)` would add a line number, which counts the lines of joined cells.
            return plain(str(error.msg), MESSAGE_LIMIT)  # type: ignore[attr-defined]
        return plain(str(error), MESSAGE_LIMIT)
    except BaseException:
        return ""


def _line(error: BaseException, source: str) -> int | None:
    """Return the innermost line of the attempt's own file in the traceback, or None.

    If there is none, and the file itself cannot be parsed, return the line of the SyntaxError.
    """
    line: object = None
    if type(error) in _OF_A_TEXT and error.filename == source:  # type: ignore[attr-defined]
        line = error.lineno  # type: ignore[attr-defined]
    for frame, number in traceback.walk_tb(_TRACEBACK(error)):
        if str.__eq__(source, frame.f_code.co_filename) is True:
            line = number
    return line if type(line) is int and 0 < line <= LARGEST_LINE else None


def _subject(namespace: Mapping[str, object], call: Call, built: list[Built]) -> Any:
    """Return the function or the module to call. A new module is appended to `built`."""
    if isinstance(call.subject, str):
        return lookup(namespace, call.subject)
    built.append(build_module(namespace, call.subject))
    return built[-1].module


def _with_bound_arguments(subject: Any, step: FollowUp) -> FollowUp:
    """Return the step with keyword arguments by position if a decorator wraps the subject.

    The wrapper may not accept the names. functools.wraps keeps them in the signature.
    """
    if not step.kwargs or not hasattr(subject, "__wrapped__"):
        return step
    bound = inspect.signature(subject).bind(*step.args, **step.kwargs)
    return replace(step, args=tuple(bound.args), kwargs=dict(bound.kwargs))


def _argument(
    namespace: Mapping[str, object], call: Call, built: list[Built], value: object
) -> object:
    """Return an argument as the attempt receives it. Tensors, lists and dicts are copied.

    A Build becomes a module, which is appended to `built`. A tensor becomes an ndarray if the call
    asks for arrays. With a cotangent, floating-point tensors and stand-ins require gradients.
    """
    if isinstance(value, Build):
        built.append(build_module(namespace, value))
        return built[-1].module
    if isinstance(value, Tensor):
        value = value.detach().clone()  # a copy, because the judge uses the same tensors again
        if call.arrays:
            return value.numpy()
        return value.requires_grad_(call.cotangent is not None and value.is_floating_point())
    argument = deepcopy(value) if isinstance(value, list | dict) else plain_argument(value)
    if isinstance(value, StandIn) and isinstance(argument, torch.nn.Module):
        argument.requires_grad_(call.cotangent is not None)
    return argument


def _changed_arguments(call: Call, steps: Sequence[FollowUp]) -> tuple[str, ...]:
    """Return the names of the arguments that the attempt changed in place.

    Args:
        call: the call, with the arguments as they were sent.
        steps: the steps with the arguments that the attempt was given. A changed weight of a
            StandIn has a name such as "args.0.proj.weight".
    """
    arguments = call.with_steps(tuple(steps)).arguments
    changed = list[str]()
    for name, sent in call.arguments.items():
        after: Any = arguments[name]
        if isinstance(sent, StandIn) and isinstance(after, torch.nn.Module):
            current_weights = {
                weight_name: weight.detach() for weight_name, weight in after.named_parameters()
            }
            weights = {f"{layer}.weight": weight for layer, weight in sent.linears.items()}
            changed += [
                f"{name}.{weight_name}"
                for weight_name, weight in weights.items()
                if not is_same(current_weights.get(weight_name), weight)
            ]
        elif isinstance(sent, Tensor):
            current = torch.from_numpy(after) if call.arrays else after.detach()
            changed += [] if is_same(current, sent) else [name]
        elif isinstance(sent, list | dict):
            changed += [] if is_same(after, sent) else [name]
    return tuple(changed)


def _gradients(
    run: Run,
    call: Call,
    steps: Sequence[FollowUp],
    built: Sequence[Built],
    monitor: OpMonitor | None,
) -> dict[str, Tensor | None]:
    """Return the gradients of the sum of all (output * cotangent).sum(), by name.

    First, the monitor searches the graphs of all outputs. The result is empty if no output has a
    cotangent, or if such an output is not a tensor of its cotangent's shape. Otherwise it has each
    of `_differentiable`, with None if no gradient reaches it. With `call.second`, the gradients of
    the sum of squares of the arguments' gradients are added, such as "second.args.0", unless no
    output requires a gradient.
    """
    leaves = run.leaves()
    variables = _differentiable(call.with_steps(tuple(steps)), built)
    if monitor:
        for leaf in leaves:
            monitor.inspect_graph(leaf)
    pairs = [
        (leaf, cotangent)
        for leaf, cotangent in zip(leaves, call.cotangents, strict=False)
        if cotangent is not None
    ]
    if not pairs or not all(
        isinstance(o, Tensor) and o.shape == cotangent.shape for o, cotangent in pairs
    ):
        return {}
    reached = [
        (o, cotangent) for o, cotangent in pairs if isinstance(o, Tensor) and o.requires_grad
    ]
    if not reached:
        return dict.fromkeys(variables)
    # The gradient of one scalar is computed, because with `grad_outputs` torch imports sympy, which
    # costs 180 ms in every fresh process.
    sums = [(output * cotangent.to(output.dtype)).sum() for output, cotangent in reached]
    total = sums[0] if len(sums) == 1 else torch.stack(sums).sum()
    tensors = torch.autograd.grad(
        total, list(variables.values()), allow_unused=True, create_graph=call.second
    )
    gradients: dict[str, Tensor | None] = dict(zip(variables, tensors, strict=True))
    if call.second:
        of_args = {
            name: g for name, g in gradients.items() if name.startswith("args.") and g is not None
        }
        squares = torch.stack([(g * g).sum() for g in of_args.values()]).sum()
        second = torch.autograd.grad(
            squares, [variables[name] for name in of_args], allow_unused=True
        )
        gradients.update({f"second.{name}": g for name, g in zip(of_args, second, strict=True)})
    return {name: None if g is None else g.detach().cpu() for name, g in gradients.items()}


def _differentiable(call: Call, built: Sequence[Built]) -> dict[str, Tensor]:
    """Return every argument and parameter that requires a gradient, by its name in the reply.

    Keyword arguments are left out. The parameters are those of stand-ins and of built modules.
    """
    variables: dict[str, Tensor] = {}
    for name, value in call.arguments.items():
        if "kwargs." in name:
            continue
        if isinstance(value, Tensor) and value.requires_grad:
            variables[name] = value
        elif isinstance(value, Module):
            variables.update(
                {f"{name}.{parameter_name}": p for parameter_name, p in value.named_parameters()}
            )
    for built_module in built:
        variables.update(
            {name: p for name, p in parameters_of(built_module.module).items() if p.requires_grad}
        )
    return variables


def on_its_device(call: Call) -> Call:
    """Return the call with its tensors moved to its device, or the same call if it names no device.

    Modules are moved when they are built. Meta tensors and arrays are never moved.
    """
    device = call.device
    if device is None or call.arrays:
        return call

    def move_value(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value if value.device.type == "meta" else value.to(device)
        if isinstance(value, StandIn):
            return replace(
                value, linears={name: move_value(weight) for name, weight in value.linears.items()}
            )
        return tuple(map(move_value, value)) if type(value) is tuple else value

    return replace(call.map(move_value), cotangent=move_value(call.cotangent))


def _autocast(dtype: str | None, values: Iterable[object]) -> AbstractContextManager[Any]:
    """Return a context of torch.autocast for this dtype on the device of the first tensor.

    If `dtype` is None, the context does nothing.
    """
    if dtype is None:
        return nullcontext()
    device = next((value.device.type for value in values if isinstance(value, Tensor)), "cpu")
    return torch.autocast(device, getattr(torch, dtype))


@contextmanager
def _peak_memory(bytes_: list[int]) -> Iterator[None]:
    """Append to `bytes_` the peak of allocated GPU memory beyond that allocated before.

    Without a GPU, nothing is appended.
    """
    baseline = 0
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        baseline = torch.cuda.memory_allocated()
    yield
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
        bytes_.append(torch.cuda.max_memory_allocated() - baseline)
