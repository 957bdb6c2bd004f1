"""Trace one call, operation by operation.

For each operation, the trace holds the inputs and outputs, the line that ran it, and whether memory
was copied. It is only for display (`course trace`, `course plot`), never for a verdict, because
code can hide its operations from a TorchFunctionMode. Steps that differ only in their numbers are
sent once, with the order in which they ran, so that the trace of a loop stays small.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, resolve_name

from .answer_call import execute
from .messages import (
    CROPS,
    DEPTH,
    ELEMENTS,
    ORDER,
    SIDES,
    SLICES,
    STEPS,
    Reply,
    Slice,
    Step,
    TensorInfo,
    TraceCall,
    Traced,
    dtype_name,
)

T = TypeVar("T")
_Snapshot = tuple[Tensor, int, int]  # a tensor, its memory address and its version at one moment
_Location = tuple[int, int]  # a line, and the bytecode offset in its function

# Operations that return a new tensor with the same numbers at other positions.
_MOVES = frozenset(
    """contiguous clone reshape reshape_as flatten ravel repeat repeat_interleave tile cat concat
    concatenate stack hstack vstack __getitem__ index_select gather take_along_dim roll
    flip""".split()
)
_SCALARS = (torch.float32, torch.float64, torch.int64)
_NAMES = {"__getitem__": "index", "__setitem__": "index =", "__iter__": "unpack", "__rdiv__": "div"}


def trace(namespace: Mapping[str, object], message: TraceCall, source: str) -> Traced:
    """Execute the call, and return its trace and its reply.

    Args:
        namespace: the names that the attempt defines.
        message: the call, and the numbers to send.
        source: the name of the student's file.
    """
    tracer = Tracer(source, message.crop, message.times)
    reply = execute(namespace, message.call, source, tracer)
    return tracer.finish(reply)


@dataclass
class _Operation:
    """One call of a torch function, with its input tensors as they were before it."""

    func: Any
    name: str  # "view", "__getitem__", or "__get__" for a property
    snapshots: list[_Snapshot]
    inputs: tuple[TensorInfo, ...]
    numbers: tuple[float, ...]
    outputs: list[Tensor] = field(default_factory=list)
    raised: bool = False

    def moves(self) -> bool:
        """Return whether the operation only moves numbers, and changes none."""
        return self.name in _MOVES or (
            bool(self.outputs)
            and _storage_of(self.snapshots, self.outputs[0], True) in ("view", "same")
        )


@dataclass
class _CurrentStep:
    """The step that is being recorded.

    It has several operations if the student's line called a function with several.
    """

    frame: FrameType | None
    step: Step
    snapshots: list[_Snapshot]
    moves: bool = True


@dataclass
class _RecordedStep:
    """A step, with the crops and slices of its first runs."""

    step: Step
    crops: list[Tensor] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)

    def complete(self) -> Step:
        """Return the step with its crops and slices."""
        return replace(self.step, crops=tuple(self.crops), slices=tuple(self.slices))


class Tracer(TorchFunctionMode):
    """Records the operations of student code: `with tracer: …`, then `tracer.finish(reply)`.

    An operation that cannot be described is counted as dropped, and never makes the call fail.
    """

    def __init__(self, source: str, crop: tuple[int, ...], times: int) -> None:
        super().__init__()
        self._source, self._crop, self._times = source, crop, times
        self._indices: dict[Step, int] = {}
        self._steps: list[_RecordedStep] = []
        self._order: list[int] = []
        self._dropped = self._crops = 0
        self._current: _CurrentStep | None = None

    def finish(self, reply: Reply) -> Traced:
        """Store the last step, and return the recorded steps with the call's reply."""
        self._close()
        steps = tuple(recorded.complete() for recorded in self._steps)
        return Traced(reply, steps, tuple(self._order), self._dropped)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operation = _value_or_default(lambda: _operation(func, args, kwargs), None)
        if operation is None:  # it cannot be described, which must not make the call fail
            self._dropped += 1
            return func(*args, **kwargs)
        try:
            out = func(*args, **kwargs)
        except Exception:
            # Code often asks for an attribute that may not exist: this is not worth showing.
            operation.raised = operation.name != "__get__"
            self._note(operation)
            raise
        operation.outputs = [args[0]] if operation.name == "__setitem__" else list(_tensors_in(out))
        self._note(operation)
        return out

    def _note(self, operation: _Operation) -> None:
        """Record the operation if it has outputs or raised, and a line of the student led to it."""
        if not operation.outputs and not operation.raised:
            return
        try:
            locations, frame = self._locations()
            if locations:
                self._record(operation, locations, frame)
        except Exception:
            self._dropped += 1

    def _locations(self) -> tuple[list[_Location], FrameType | None]:
        """Return the innermost lines of the student on the stack, at most DEPTH, and a frame.

        The lines are in order, outermost first. The frame is the one that the innermost line
        called, or None if the line ran the operation itself.
        """
        locations: list[_Location] = []
        called = None
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and len(locations) < DEPTH and frame.f_code is not execute.__code__:
            if frame.f_code.co_filename == self._source:
                locations.append((frame.f_lineno, frame.f_lasti))
            elif not locations:
                called = frame
            frame = frame.f_back
        return locations[::-1], called

    def _record(
        self, operation: _Operation, locations: list[_Location], frame: FrameType | None
    ) -> None:
        """Add the operation to the current step, or close this step and begin a new one.

        Operations belong to one step if the same call in the innermost line ran them.

        Args:
            operation: the operation.
            locations: the student's lines that lead to it.
            frame: the frame that the innermost line called, if any.
        """
        current = self._current
        if current is None or frame is None or current.frame is not frame:
            self._close()
            current = self._current = _new_step(operation, locations, frame)
        elif _names_the_step(frame):
            current.step = replace(
                current.step, name=_NAMES.get(frame.f_code.co_name, frame.f_code.co_name)
            )
        current.moves &= operation.moves()
        outputs = operation.outputs
        crop = _crop_of(outputs[0], self._crop) if outputs else None
        crops = () if crop is None else (crop,)
        current.step = replace(
            current.step,
            outputs=tuple(_tensor_info(t) for t in outputs[:SIDES]),
            output_count=len(outputs),
            storage=_storage_of(current.snapshots, outputs[0], current.moves) if outputs else "",
            raised=operation.raised,
            crops=crops,
            slices=_value_or_default(lambda: _slices_of(current.snapshots, outputs), ()),
        )

    def _close(self) -> None:
        """Store the current step, with its crops and slices if this is one of its first runs.

        If there is no room for the step or for its place in the order, it is counted as dropped.
        """
        if self._current is None:
            return
        step, self._current = self._current.step, None
        inputs = _without_values(step.inputs)
        outputs = _without_values(step.outputs)
        # The key is the step without its numbers. Steps with the same key are sent once.
        key = replace(step, inputs=inputs, outputs=outputs, crops=(), numbers=(), slices=())
        if key not in self._indices and len(self._steps) < STEPS:
            self._indices[key] = len(self._steps)
            self._steps.append(_RecordedStep(replace(step, crops=(), slices=())))
        if key not in self._indices or len(self._order) >= ORDER:
            self._dropped += 1
            return
        self._order.append(self._indices[key])
        recorded = self._steps[self._indices[key]]
        if len(recorded.slices) < SLICES:
            recorded.slices.extend(step.slices)
        if len(recorded.crops) < self._times and self._crops + len(step.crops) <= CROPS:
            recorded.crops.extend(step.crops)
            self._crops += len(step.crops)


def _without_values(side: tuple[TensorInfo, ...]) -> tuple[TensorInfo, ...]:
    return tuple(replace(tensor_info, value=None) for tensor_info in side)


# The worker's folder belongs here because of the modes in around_call.py, which run operations.
_TORCH = (torch.__file__.removesuffix("__init__.py"), __file__.removesuffix("trace_operations.py"))


def _operation(func: Any, args: Any, kwargs: Any) -> _Operation:
    """Return the description of an operation before it runs."""
    snapshots = _snapshot(_tensors_in((args, tuple(kwargs.values()))))
    arguments = (*args[:4], *(kwargs[k] for k in ("scale", "value", "alpha") if k in kwargs))
    numbers = tuple(
        float(a) for a in arguments if isinstance(a, int | float) and not isinstance(a, bool)
    )[:4]
    name = str(getattr(func, "__name__", ""))
    return _Operation(
        func, name, snapshots, tuple(_tensor_info(t) for t, _, _ in snapshots[:SIDES]), numbers
    )


def _new_step(
    operation: _Operation, locations: list[_Location], frame: FrameType | None
) -> _CurrentStep:
    """Return a step that begins with this operation; see `Tracer._record` for the arguments."""
    snapshots, inputs = operation.snapshots, operation.inputs
    if frame is not None and _is_module_call(frame):  # the layer's arguments, not its parameters
        tensors = list(
            _tensors_in((frame.f_locals["args"], tuple(frame.f_locals["kwargs"].values())))
        )
        snapshots = _snapshot(tensors)
        inputs = tuple(_tensor_info(t) for t in tensors[:SIDES])
    lines, sites = zip(*locations, strict=True)
    input_count = len(snapshots)
    numbers = operation.numbers
    step = Step(
        _name(operation, frame), lines, sites, inputs, input_count=input_count, numbers=numbers
    )
    return _CurrentStep(frame, step, snapshots)


def _name(operation: _Operation, frame: FrameType | None) -> str:
    """Return the name of the layer, function or torch operation that the student's line called."""
    name = operation.name
    if frame is not None and (_is_module_call(frame) or frame.f_code.co_name == "__init__"):
        name = type(frame.f_locals.get("self")).__name__
    elif frame is not None and (
        not frame.f_code.co_filename.startswith(_TORCH) or frame.f_code.co_name in _NAMES
    ):
        name = frame.f_code.co_name
    elif name == "__get__":
        name = (resolve_name(operation.func) or name).split(".")[-2]
    return _NAMES.get(name, name.strip("_") if name.startswith("__") else name)[:60]


def _is_module_call(frame: FrameType) -> bool:
    return frame.f_code.co_name == "_wrapped_call_impl" and isinstance(
        frame.f_locals.get("self"), nn.Module
    )


def _names_the_step(frame: FrameType) -> bool:
    """Return whether this frame gives a step with several operations its name.

    This is so if the frame is a function of torch that ran them.
    """
    in_torch = frame.f_code.co_filename.startswith(_TORCH)
    return (
        in_torch
        and frame.f_code.co_name not in ("__init__", "__torch_function__")
        and not _is_module_call(frame)
    )


def _tensors_in(value: Any, depth: int = 3) -> Iterator[Tensor]:
    """Yield the tensors in a value, also in lists and tuples that are nested up to `depth`."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list) and depth:
        for item in value:
            yield from _tensors_in(item, depth - 1)


def _snapshot(tensors: Iterable[Tensor]) -> list[_Snapshot]:
    """Return the current address and version of these tensors."""
    return [(t, _memory(t), _version(t)) for t in tensors]


def _tensor_info(tensor: Tensor) -> TensorInfo:
    """Return a tensor's shape and dtype, and its value if it has no axes and is on the CPU."""
    shape = tuple(int(n) for n in tensor.shape)
    has_value = not shape and tensor.device.type == "cpu" and tensor.dtype in _SCALARS
    value = _value_or_default(lambda: float(tensor.detach()), None) if has_value else None
    return TensorInfo(
        shape, dtype_name(tensor.dtype), _value_or_default(tensor.is_contiguous, True), value
    )


def _storage_of(snapshots: list[_Snapshot], out: Tensor, moves: bool) -> str:
    """Return how the output's memory relates to the inputs (`Step.storage`).

    The result is "in place" if an input was changed, "same" if the output is an input, "" if the
    output's memory is unknown, "view" if the output begins at an input's address, and otherwise
    "copy" or "new".

    Args:
        snapshots: the inputs, with their memory and version before the operation.
        out: the output.
        moves: whether the operation only moves numbers, and changes none.
    """
    if any(_version(t) != version for t, _, version in snapshots):
        return "in place"
    if any(t is out for t, _, _ in snapshots):
        return "same"
    memory = _memory(out)
    if not memory:
        return ""
    if any(memory == m for _, m, _ in snapshots):
        return "view"
    return "copy" if moves and snapshots else "new"


def _slices_of(inputs: list[_Snapshot], outputs: list[Tensor]) -> tuple[Slice, ...]:
    """Return the slice along one axis that the operation took, or () for any other operation."""
    if len(inputs) != 1 or len(outputs) != 1:
        return ()
    tensor, sliced = inputs[0][0], outputs[0]
    is_view = _memory(sliced) != 0 and _memory(sliced) == _memory(tensor)
    if not is_view or tensor.stride() != sliced.stride() or not sliced.numel():
        return ()
    shorter = [axis for axis, size in enumerate(tensor.shape) if sliced.shape[axis] != size]
    if len(shorter) != 1:
        return ()
    axis = shorter[0]
    offset = sliced.storage_offset() - tensor.storage_offset()
    start = offset // max(1, tensor.stride(axis))
    return (Slice(axis, start, start + sliced.shape[axis]),) if start >= 0 else ()


def _crop_of(tensor: Tensor, counts: tuple[int, ...]) -> Tensor | None:
    """Return a copy of a corner of the tensor, as bool or float32 on the CPU.

    The corner has the first `counts` numbers along the last axes, at index 0 of the other axes.
    Returns None if there are no counts, if the tensor holds no plain numbers, or if the corner has
    more than ELEMENTS numbers.
    """
    plain = type(tensor) in (
        Tensor,
        nn.Parameter,
    ) and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    if (
        not counts
        or not plain
        or tensor.layout is not torch.strided
        or tensor.device.type == "meta"
    ):
        return None
    crop = tensor.detach()
    while crop.dim() > len(counts):
        if not len(crop):
            return None
        crop = crop[0]
    crop = crop[tuple(slice(count) for count in counts[len(counts) - crop.dim() :])]
    if crop.numel() > ELEMENTS or crop.is_complex() or crop.is_quantized:
        return None
    return crop.to("cpu", torch.bool if crop.dtype is torch.bool else torch.float32, copy=True)


def _memory(tensor: Tensor) -> int:
    """Return the address of the tensor's memory, or 0 if it has none (inside vmap, on meta)."""
    return _value_or_default(lambda: tensor.untyped_storage().data_ptr(), 0)


def _version(tensor: Tensor) -> int:
    return _value_or_default(lambda: tensor._version, 0)


def _value_or_default(ask: Callable[[], T], otherwise: T) -> T:
    try:
        return ask()
    except Exception:
        return otherwise
