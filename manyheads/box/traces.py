"""Read the answer to a TraceCall as untrusted bytes: it has exactly the agreed structure and sizes, or BadReply is raised."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from torch import Tensor

from .replies import BadReply, Model, Name, ReplyModel, Size, TensorRef, read_as, reply_of
from .worker.answers import Step, TensorInfo, Traced
from .worker.tensor_info import ELEMENTS
from .worker.tracing import CROPS, DEPTH, ORDER, SIDES, STEPS


class _TensorInfo(Model):
    kind: Literal["TensorInfo"] = Field(alias="$")
    shape: list[Size] = Field(max_length=64)
    dtype: Name
    contiguous: bool
    value: float | None = None


class _Step(Model):
    kind: Literal["Step"] = Field(alias="$")
    name: Annotated[str, Field(max_length=60)]
    lines: list[Size] = Field(min_length=1, max_length=DEPTH)
    sites: list[Size] = Field(min_length=1, max_length=DEPTH)
    inputs: list[_TensorInfo] = Field([], max_length=SIDES)
    outputs: list[_TensorInfo] = Field([], max_length=SIDES)
    input_count: Size = 0
    output_count: Size = 0
    storage: Literal["view", "copy", "new", "same", "in place", ""] = ""
    numbers: list[float] = Field([], max_length=4)
    raised: bool = False
    crops: list[TensorRef] = Field([], max_length=CROPS)


class _Traced(Model):
    kind: Literal["Traced"] = Field(alias="$")
    reply: ReplyModel
    steps: list[_Step] = Field(max_length=STEPS)
    order: list[Size] = Field(max_length=ORDER)
    dropped: Size = 0


_READER = TypeAdapter(_Traced)


def read_traced(payload: bytes) -> Traced:
    """Read a traced call. Raises BadReply, and nothing else, for anything that is not one."""
    return read_as(_READER, _traced, payload)


def _traced(model: _Traced, tensors: list[Tensor]) -> Traced:
    if any(tensors[ref.index].numel() > ELEMENTS for step in model.steps for ref in step.crops):
        raise BadReply("a tensor of numbers is larger than agreed")
    if any(place >= len(model.steps) for place in model.order):
        raise BadReply("it names a step that is not in it")
    steps = tuple(_step(step, tensors) for step in model.steps)
    return Traced(reply_of(model.reply, tensors), steps, tuple(model.order), model.dropped)


def _step(model: _Step, tensors: list[Tensor]) -> Step:
    return Step(
        model.name,
        tuple(model.lines),
        tuple(model.sites),
        tuple(_tensor_info(each) for each in model.inputs),
        tuple(_tensor_info(output) for output in model.outputs),
        model.input_count,
        model.output_count,
        model.storage,
        tuple(model.numbers),
        model.raised,
        tuple(tensors[ref.index] for ref in model.crops),
    )


def _tensor_info(model: _TensorInfo) -> TensorInfo:
    return TensorInfo(tuple(model.shape), model.dtype, model.contiguous, model.value)
