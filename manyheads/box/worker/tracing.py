"""Follow one call, operation by operation: what each took and gave, from which line, and whether numbers moved.

For the student's own eyes (`course trace`, `course plot`), never for a verdict: code that wants to hide from a
mode can. Steps that look alike are sent once, with the order in which they came, so that a loop stays small.
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

from .answers import Reply, Seen, Step, Traced
from .execute import execute
from .messages import TraceCall
from .tensor_info import Noted, corner, kept, noted, seen, tensors_in

STEPS, ORDER, CROPS = 400, 20_000, 256  # distinct steps, operations in their order, corners
SIDES, DEPTH = 8, 6  # inputs or outputs of a step, lines that lead to it
LineOf = Callable[[str, int], int | None]
_Place = tuple[int, int]  # a line and where in the bytecode of its function

# Operations that give a tensor of its own whose numbers are the old ones in another place.
_MOVES = frozenset(
    """contiguous clone reshape reshape_as flatten ravel repeat repeat_interleave tile cat concat concatenate stack
    hstack vstack __getitem__ index_select gather take_along_dim roll flip""".split()
)
_NAMES = {"__getitem__": "index", "__setitem__": "index =", "__iter__": "unpack", "__rdiv__": "div"}


def trace(namespace: Mapping[str, object], message: TraceCall, source: str, line_of: LineOf | None = None) -> Traced:
    """Perform the call and follow it. `line_of` numbers the student's lines; by default those of the file `source`."""

    def line_of_file(name: str, line: int) -> int | None:
        return line if name == source else None

    tracer = Tracer(line_of or line_of_file, message.crop, message.times)
    reply = execute(namespace, message.call, source, tracer)
    return tracer.traced(reply)


@dataclass
class _Operation:
    """One call of a torch function, before and after."""

    func: Any
    before: list[Noted]
    inputs: tuple[Seen, ...]
    numbers: tuple[float, ...]
    outputs: list[Tensor] = field(default_factory=list)
    raised: bool = False

    @property
    def name(self) -> str:
        """As torch knows it: view, __getitem__, __get__ for a property."""
        return str(getattr(self.func, "__name__", ""))

    def moves(self) -> bool:
        """Whether it leaves every number as it is."""
        return self.name in _MOVES or (
            bool(self.outputs) and kept(self.before, self.outputs[0], True) in ("view", "same")
        )


@dataclass
class _Open:
    """The step that is being seen: several operations where the student's line called something that made several."""

    frame: FrameType | None
    step: Step
    before: list[Noted]
    moves: bool = True


class Tracer(TorchFunctionMode):
    """`with Tracer(...) as tracer: ...`, then `tracer.traced(reply)`."""

    def __init__(self, line_of: LineOf, crop: tuple[int, ...], times: int) -> None:
        super().__init__()
        self._line_of, self._crop, self._times = line_of, crop, times
        self._places: dict[Step, int] = {}
        self._steps: list[tuple[Step, list[Tensor]]] = []
        self._order: list[int] = []
        self._lost = self._crops = 0
        self._open: _Open | None = None

    def traced(self, reply: Reply) -> Traced:
        """All that was seen, beside the call's reply."""
        self._close()
        steps = tuple(replace(step, crops=tuple(crops)) for step, crops in self._steps)
        return Traced(reply, steps, tuple(self._order), self._lost)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operation = self._begun(func, args, kwargs)
        if operation is None:
            return func(*args, **kwargs)
        try:
            out = func(*args, **kwargs)
        except Exception:
            operation.raised = operation.name != "__get__"  # which student code asks for things that are not there
            self._note(operation)
            raise
        operation.outputs = [args[0]] if operation.name == "__setitem__" else list(tensors_in(out))
        self._note(operation)
        return out

    def _begun(self, func: Any, args: Any, kwargs: Any) -> _Operation | None:
        try:
            before = noted(tensors_in((args, tuple(kwargs.values()))))
            return _Operation(func, before, tuple(seen(t) for t, _, _ in before[:SIDES]), _numbers(args, kwargs))
        except Exception:  # what cannot be followed is not the student's fault
            self._lost += 1
            return None

    def _note(self, operation: _Operation) -> None:
        if not operation.outputs and not operation.raised:
            return
        try:
            places, frame = self._where()
            if places:
                self._see(operation, places, frame)
        except Exception:
            self._lost += 1

    def _where(self) -> tuple[list[_Place], FrameType | None]:
        """The student's places, outermost first, and the frame that the innermost of them called, if any."""
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

    def _see(self, operation: _Operation, places: list[_Place], frame: FrameType | None) -> None:
        opened = self._open
        if opened is None or frame is None or opened.frame is not frame:
            self._close()
            opened = self._open = _opened(operation, places, frame)
        elif _is_ours_to_name(frame):
            opened.step = replace(opened.step, name=_NAMES.get(frame.f_code.co_name, frame.f_code.co_name))
        opened.moves &= operation.moves()
        outputs = operation.outputs
        crop = corner(outputs[0], self._crop) if outputs else None
        opened.step = replace(
            opened.step,
            outputs=tuple(seen(t) for t in outputs[:SIDES]),
            given=len(outputs),
            kept=kept(opened.before, outputs[0], opened.moves) if outputs else "",
            raised=operation.raised,
            crops=() if crop is None else (crop,),
        )

    def _close(self) -> None:
        """The open step is done: note it, and its numbers where it ran for the first times."""
        if self._open is None:
            return
        step, self._open = self._open.step, None
        alike = _without_values(step)
        if alike not in self._places and len(self._steps) < STEPS:
            self._places[alike] = len(self._steps)
            self._steps.append((replace(step, crops=()), []))
        if alike not in self._places or len(self._order) >= ORDER:
            self._lost += 1
            return
        self._order.append(self._places[alike])
        crops = self._steps[self._places[alike]][1]
        if len(crops) < self._times and self._crops + len(step.crops) <= CROPS:
            crops.extend(step.crops)
            self._crops += len(step.crops)


_TORCH = torch.__file__.removesuffix("__init__.py")


def _opened(operation: _Operation, places: list[_Place], frame: FrameType | None) -> _Open:
    """A new step that begins with this operation."""
    before, inputs = operation.before, operation.inputs
    if frame is not None and _is_module_call(frame):  # what the layer was given, not what it holds
        given = list(tensors_in((frame.f_locals["args"], tuple(frame.f_locals["kwargs"].values()))))
        before, inputs = noted(given), tuple(seen(t) for t in given[:SIDES])
    lines, sites = zip(*places, strict=True)
    taken, numbers = len(before), operation.numbers
    return _Open(frame, Step(_name(operation, frame), lines, sites, inputs, taken=taken, numbers=numbers), before)


def _name(operation: _Operation, frame: FrameType | None) -> str:
    """What the student's line called: a layer, a function of another library, or an operation of torch."""
    name = operation.name
    if frame is not None and (_is_module_call(frame) or frame.f_code.co_name == "__init__"):
        name = type(frame.f_locals.get("self")).__name__
    elif frame is not None and (not frame.f_code.co_filename.startswith(_TORCH) or frame.f_code.co_name in _NAMES):
        name = frame.f_code.co_name
    elif name == "__get__":
        name = (resolve_name(operation.func) or name).split(".")[-2]
    return _NAMES.get(name, name.strip("_") if name.startswith("__") else name)[:60]


def _without_values(step: Step) -> Step:
    """The same for two steps that differ in their numbers alone."""
    inputs, outputs = (tuple(replace(s, value=None) for s in side) for side in (step.inputs, step.outputs))
    return replace(step, inputs=inputs, outputs=outputs, crops=(), numbers=())


def _is_module_call(frame: FrameType) -> bool:
    return frame.f_code.co_name == "_wrapped_call_impl" and isinstance(frame.f_locals.get("self"), nn.Module)


def _is_ours_to_name(frame: FrameType) -> bool:
    """Whether several operations of one call are named after torch's function that made them."""
    in_torch = frame.f_code.co_filename.startswith(_TORCH)
    return in_torch and frame.f_code.co_name != "__init__" and not _is_module_call(frame)


def _numbers(args: Any, kwargs: Any) -> tuple[float, ...]:
    given = (*args[:4], *(kwargs[k] for k in ("scale", "value", "alpha") if k in kwargs))
    return tuple(float(a) for a in given if isinstance(a, int | float) and not isinstance(a, bool))[:4]
