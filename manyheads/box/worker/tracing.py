"""Trace one call, operation by operation: inputs and outputs, the line that ran it, and whether memory was copied.

Only for display (`course trace`, `course plot`), never for a verdict: code that wants to hide from a mode can. Steps
that differ only in their numbers are sent once, with the order in which they ran, so that a loop stays small.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, resolve_name

from .answers import Reply, Step, TensorInfo, Traced
from .execute import execute
from .messages import TraceCall
from .tensor_info import Snapshot, crop_of, snapshot, storage_of, tensor_info, tensors_in

STEPS, ORDER, CROPS = 400, 20_000, 512  # the most distinct steps, operations in their order, and crops
SIDES, DEPTH = 8, 6  # the most inputs or outputs of a step, and lines that lead to it
LineOf = Callable[[str, int], int | None]
_Place = tuple[int, int]  # a line, and the bytecode offset in its function

# Operations that return a new tensor with the same numbers at other positions.
_MOVES = frozenset(
    """contiguous clone reshape reshape_as flatten ravel repeat repeat_interleave tile cat concat concatenate stack
    hstack vstack __getitem__ index_select gather take_along_dim roll flip""".split()
)
_NAMES = {"__getitem__": "index", "__setitem__": "index =", "__iter__": "unpack", "__rdiv__": "div"}


def trace(namespace: Mapping[str, object], message: TraceCall, source: str, line_of: LineOf | None = None) -> Traced:
    """Execute the call and trace it. `line_of` numbers the student's lines; by default those of the file `source`."""

    def line_of_file(name: str, line: int) -> int | None:
        return line if name == source else None

    tracer = Tracer(line_of or line_of_file, message.crop, message.times)
    reply = execute(namespace, message.call, source, tracer)
    return tracer.traced(reply)


@dataclass
class _Operation:
    """One call of a torch function, with its inputs and outputs."""

    func: Any
    before: list[Snapshot]
    inputs: tuple[TensorInfo, ...]
    numbers: tuple[float, ...]
    outputs: list[Tensor] = field(default_factory=list)
    raised: bool = False

    @property
    def name(self) -> str:
        """The function's name in torch: view, __getitem__, __get__ for a property."""
        return str(getattr(self.func, "__name__", ""))

    def moves(self) -> bool:
        """Return whether it changes no number."""
        return self.name in _MOVES or (
            bool(self.outputs) and storage_of(self.before, self.outputs[0], True) in ("view", "same")
        )


@dataclass
class _CurrentStep:
    """The step that is being recorded. It has several operations if the student's line called a function with several."""

    frame: FrameType | None
    step: Step
    before: list[Snapshot]
    moves: bool = True


class Tracer(TorchFunctionMode):
    """`with Tracer(...) as tracer: ...`, then `tracer.traced(reply)`."""

    def __init__(self, line_of: LineOf, crop: tuple[int, ...], times: int) -> None:
        super().__init__()
        self._line_of, self._crop, self._times = line_of, crop, times
        self._places: dict[Step, int] = {}
        self._steps: list[tuple[Step, list[Tensor]]] = []
        self._order: list[int] = []
        self._dropped = self._crops = 0
        self._current: _CurrentStep | None = None

    def traced(self, reply: Reply) -> Traced:
        """Everything that was recorded, with the call's reply."""
        self._close()
        steps = tuple(replace(step, crops=tuple(crops)) for step, crops in self._steps)
        return Traced(reply, steps, tuple(self._order), self._dropped)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operation = self._start(func, args, kwargs)
        if operation is None:
            return func(*args, **kwargs)
        try:
            out = func(*args, **kwargs)
        except Exception:
            operation.raised = operation.name != "__get__"  # an attribute that does not exist is no error worth showing
            self._note(operation)
            raise
        operation.outputs = [args[0]] if operation.name == "__setitem__" else list(tensors_in(out))
        self._note(operation)
        return out

    def _start(self, func: Any, args: Any, kwargs: Any) -> _Operation | None:
        try:
            before = snapshot(tensors_in((args, tuple(kwargs.values()))))
            return _Operation(func, before, tuple(tensor_info(t) for t, _, _ in before[:SIDES]), _numbers(args, kwargs))
        except Exception:  # an operation that cannot be described must not fail the call
            self._dropped += 1
            return None

    def _note(self, operation: _Operation) -> None:
        if not operation.outputs and not operation.raised:
            return
        try:
            places, frame = self._where()
            if places:
                self._record(operation, places, frame)
        except Exception:
            self._dropped += 1

    def _where(self) -> tuple[list[_Place], FrameType | None]:
        """Return the student's lines on the stack, outermost first, and the frame that the innermost one called, if any."""
        places: list[_Place] = []
        called = None
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and len(places) < DEPTH and frame.f_code is not execute.__code__:
            line = self._line_of(frame.f_code.co_filename, frame.f_lineno)
            if line is not None:
                places.append((line, frame.f_lasti))
            elif not places:
                called = frame
            frame = frame.f_back
        return places[::-1], called

    def _record(self, operation: _Operation, places: list[_Place], frame: FrameType | None) -> None:
        current = self._current
        if current is None or frame is None or current.frame is not frame:
            self._close()
            current = self._current = _new_step(operation, places, frame)
        elif _names_the_step(frame):
            current.step = replace(current.step, name=_NAMES.get(frame.f_code.co_name, frame.f_code.co_name))
        current.moves &= operation.moves()
        outputs = operation.outputs
        crop = crop_of(outputs[0], self._crop) if outputs else None
        current.step = replace(
            current.step,
            outputs=tuple(tensor_info(t) for t in outputs[:SIDES]),
            output_count=len(outputs),
            storage=storage_of(current.before, outputs[0], current.moves) if outputs else "",
            raised=operation.raised,
            crops=() if crop is None else (crop,),
        )

    def _close(self) -> None:
        """Store the current step, with its crops if this is one of its first runs."""
        if self._current is None:
            return
        step, self._current = self._current.step, None
        alike = _without_values(step)
        if alike not in self._places and len(self._steps) < STEPS:
            self._places[alike] = len(self._steps)
            self._steps.append((replace(step, crops=()), []))
        if alike not in self._places or len(self._order) >= ORDER:
            self._dropped += 1
            return
        self._order.append(self._places[alike])
        crops = self._steps[self._places[alike]][1]
        if len(crops) < self._times and self._crops + len(step.crops) <= CROPS:
            crops.extend(step.crops)
            self._crops += len(step.crops)


_TORCH = torch.__file__.removesuffix("__init__.py")


def _new_step(operation: _Operation, places: list[_Place], frame: FrameType | None) -> _CurrentStep:
    """Return a new step that starts with this operation."""
    before, inputs = operation.before, operation.inputs
    if frame is not None and _is_module_call(frame):  # the layer's arguments, not its parameters
        given = list(tensors_in((frame.f_locals["args"], tuple(frame.f_locals["kwargs"].values()))))
        before, inputs = snapshot(given), tuple(tensor_info(t) for t in given[:SIDES])
    lines, sites = zip(*places, strict=True)
    input_count, numbers = len(before), operation.numbers
    return _CurrentStep(
        frame, Step(_name(operation, frame), lines, sites, inputs, input_count=input_count, numbers=numbers), before
    )


def _name(operation: _Operation, frame: FrameType | None) -> str:
    """Return the name of what the student's line called: a layer, another library's function, or a torch operation."""
    name = operation.name
    if frame is not None and (_is_module_call(frame) or frame.f_code.co_name == "__init__"):
        name = type(frame.f_locals.get("self")).__name__
    elif frame is not None and (not frame.f_code.co_filename.startswith(_TORCH) or frame.f_code.co_name in _NAMES):
        name = frame.f_code.co_name
    elif name == "__get__":
        name = (resolve_name(operation.func) or name).split(".")[-2]
    return _NAMES.get(name, name.strip("_") if name.startswith("__") else name)[:60]


def _without_values(step: Step) -> Step:
    """Return the step without its numbers: equal for two steps that differ in numbers only."""
    inputs, outputs = (tuple(replace(s, value=None) for s in side) for side in (step.inputs, step.outputs))
    return replace(step, inputs=inputs, outputs=outputs, crops=(), numbers=())


def _is_module_call(frame: FrameType) -> bool:
    return frame.f_code.co_name == "_wrapped_call_impl" and isinstance(frame.f_locals.get("self"), nn.Module)


def _names_the_step(frame: FrameType) -> bool:
    """Return whether a step with several operations is named after this frame: a function of torch that ran them."""
    in_torch = frame.f_code.co_filename.startswith(_TORCH)
    return in_torch and frame.f_code.co_name != "__init__" and not _is_module_call(frame)


def _numbers(args: Any, kwargs: Any) -> tuple[float, ...]:
    given = (*args[:4], *(kwargs[k] for k in ("scale", "value", "alpha") if k in kwargs))
    return tuple(float(a) for a in given if isinstance(a, int | float) and not isinstance(a, bool))[:4]
