"""Read a reply as hostile bytes: it has exactly the agreed structure and plain tensors, or BadReply is raised."""

from __future__ import annotations

import dataclasses
import json
import math
import struct
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import safetensors.torch
import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from torch import Tensor

from .worker import answers
from .worker.answers import Entry, ModuleFacts, Operations, Output, Raised, Reply
from .worker.execute import BASES_LIMIT
from .worker.text import NAME_LIMIT, WORDS_LIMIT
from .worker.wire import LENGTH

HEADER_LIMIT = 1 << 20  # bytes of JSON
TENSOR_LIMIT = 512
_WIDTH = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


class BadReply(Exception):
    """The bytes are not a reply. The text completes "it sent something that is not an answer: …"."""


M = TypeVar("M")
Answer = TypeVar("Answer")
Name = Annotated[str, Field(max_length=NAME_LIMIT)]
Words = Annotated[str, Field(max_length=WORDS_LIMIT)]


def _one_of(words: frozenset[str]) -> AfterValidator:
    """Accept only these words, because evidence may repeat them: they are torch's, never a student's."""

    def known(word: str) -> str:
        if word not in words:
            raise ValueError("no such word")
        return word

    return AfterValidator(known)


_DTYPES = frozenset(str(d).removeprefix("torch.") for d in vars(torch).values() if isinstance(d, torch.dtype))
_DEVICES = frozenset("cpu cuda mps xpu meta hpu mtia xla vulkan mkldnn maia ipu lazy privateuseone".split())
Dtype = Annotated[str, _one_of(_DTYPES)]
DeviceType = Annotated[str, _one_of(_DEVICES)]
Size = Annotated[int, Field(ge=0, lt=1 << 40)]
Shape = Annotated[list[Size], Field(max_length=64)]
KernelName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,100}$")]


class Model(BaseModel):
    """A part of a reply. The worker leaves out fields that have their default."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TensorRef(Model):
    """A tensor of a reply, by its number."""

    kind: Literal["tensor"] = Field(alias="$")
    index: Size


class _Raised(Model):
    kind: Literal["Raised"] = Field(alias="$")
    type: Name
    bases: list[Name] = Field(max_length=BASES_LIMIT)
    message: Words
    stage: Literal["load", "build", "call", "gradient"]
    line: Size | None
    part: Size | None = None


class _Output(Model):
    type_: Literal["Output"] = Field(alias="$")
    kind: Name
    tensor: TensorRef | None = None
    dtype: Dtype | None = None
    device: DeviceType | None = None
    shape: Shape | None = None


class _Entry(Model):
    kind: Literal["Entry"] = Field(alias="$")
    shape: Shape
    dtype: Dtype
    device: DeviceType


class _Entries(Model):
    kind: Literal["map"] = Field(alias="$")
    items: dict[Name, _Entry] = Field(max_length=TENSOR_LIMIT)


class _Attributes(Model):
    kind: Literal["map"] = Field(alias="$")
    items: dict[Name, bool | int | float | Name] = Field(max_length=32)


class _ModuleFacts(Model):
    kind: Literal["ModuleFacts"] = Field(alias="$")
    parameters: _Entries
    buffers: _Entries
    training: bool
    changed: bool
    unloaded: list[Name] = Field(max_length=64)
    attributes: _Attributes
    plain: _Entries | None = None
    alike: bool = False


class _Operations(Model):
    kind: Literal["Operations"] = Field(alias="$")
    fused: bool
    made: list[Size] = Field([], max_length=answers.MADE_LIMIT)
    mixed: bool = False
    recorded: bool = False
    stopped: bool = False
    shapes: list[Shape] = Field([], max_length=answers.SHAPES_LIMIT)
    kernels: list[KernelName] = Field([], max_length=answers.KERNELS_LIMIT)


class _Gradients(Model):
    kind: Literal["map"] = Field(alias="$")
    items: dict[Name, TensorRef | None] = Field(max_length=TENSOR_LIMIT)


class ReplyModel(Model):
    """A reply as it must be: exactly these fields, each within its bounds."""

    kind: Literal["Reply"] = Field(alias="$")
    outputs: list[_Output] = Field([], max_length=TENSOR_LIMIT)
    gradients: _Gradients | None = None
    raised: _Raised | None = None
    mutated: list[Name] = Field([], max_length=64)
    modules: list[_ModuleFacts] = Field([], max_length=16)
    operations: _Operations | None = None
    stopped: list[_Raised] = Field([], max_length=answers.STOPPED_LIMIT)
    peak: Size | None = None
    parts: list[Size] = Field([], max_length=answers.PARTS_LIMIT)


_READER = TypeAdapter(ReplyModel)


def read_reply(payload: bytes) -> Reply:
    """Read one reply. Raises BadReply, and nothing else, for anything that is not a reply."""
    return read_as(_READER, reply_of, payload)


def within_file(reply: Reply, lines: int) -> Reply:
    """Leave out line numbers beyond the file's last line, by which an attempt could carry out information."""
    if reply.raised is None and not reply.stopped and not reply.parts:
        return reply

    def within(raised: Raised) -> Raised:
        kept = {name: n for name in ("line", "part") if (n := getattr(raised, name)) is not None and n <= lines}
        return dataclasses.replace(raised, line=kept.get("line"), part=kept.get("part"))

    stopped, parts = tuple(map(within, reply.stopped)), tuple(min(line, lines) for line in reply.parts)
    return dataclasses.replace(reply, raised=reply.raised and within(reply.raised), stopped=stopped, parts=parts)


def split(payload: bytes, count: int) -> list[bytes]:
    """Return the bytes of `count` replies, each preceded by its length. Raises BadReply, and nothing else, for anything else."""
    replies, at = [], 0
    for _ in range(count):
        begin = at + LENGTH.size
        if begin > len(payload):
            raise BadReply("it has fewer replies than requested")
        (length,) = LENGTH.unpack_from(payload, at)
        at = begin + length
        replies.append(payload[begin:at])
    if at != len(payload):
        raise BadReply("it has another number of replies than requested")
    return replies


def read_as(reader: TypeAdapter[M], make: Callable[[M, list[Tensor]], Answer], payload: bytes) -> Answer:
    """Validate the body with `reader`, then pass it and the tensors to `make`. Raises BadReply only."""
    try:
        body, count = _read_header(payload)
        named = safetensors.torch.load(payload)
        tensors = [named[f"t{i}"] for i in range(count)]
        return make(reader.validate_python(body), tensors)
    except BadReply:
        raise
    except ValidationError as error:
        raise BadReply(_where(error.errors()[0]["loc"])) from None
    except Exception as error:  # the bytes are hostile: a parser may raise anything
        raise BadReply(f"it cannot be read ({type(error).__name__})") from None


def _where(place: tuple[int | str, ...]) -> str:
    """Return what is not as agreed. Of the place only words of ours are told: a key or an index may spell a hidden input."""
    agreed = {name for model in Model.__subclasses__() for name in model.model_fields}
    named = ".".join(part for part in place if part in agreed)
    return f"its field {named!r} is not as agreed" if named else "it has a field that is not agreed"


def _read_header(payload: bytes) -> tuple[object, int]:
    """Return the JSON body and the number of tensors, which must be named t0, t1 and so on."""
    if len(payload) < 8:
        raise BadReply("it is cut short")
    (length,) = struct.unpack_from("<Q", payload)
    if length > min(HEADER_LIMIT, len(payload) - 8):
        raise BadReply("its header is too long")
    header = _parsed(payload[8 : 8 + length].rstrip(b" ").decode())
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    if len(entries) > TENSOR_LIMIT or set(entries) != {f"t{i}" for i in range(len(entries))}:
        raise BadReply("its tensors are not as agreed")
    for entry in entries.values():
        if len(entry["shape"]) > 64 or not all(type(s) is int and 0 <= s < 1 << 40 for s in entry["shape"]):
            raise BadReply("a tensor's shape is out of bounds")
        if entry["dtype"] not in _WIDTH:
            raise BadReply("a tensor's dtype is not one that is read")
        elements = math.prod(entry["shape"])
        start, end = entry["data_offsets"]
        if elements * _WIDTH[entry["dtype"]] != end - start:
            raise BadReply("a tensor's size does not fit its shape")
    return _parsed(header["__metadata__"]["body"]), len(entries)


def _parsed(text: str) -> Any:
    """Parse JSON, which must be written exactly as the worker writes it. So no key can occur twice."""
    data = json.loads(text)
    if json.dumps(data) != text:
        raise BadReply("it is not written as agreed")
    return data


def reply_of(model: ReplyModel, tensors: list[Tensor]) -> Reply:
    """Return the reply that a checked model describes, with its tensors."""

    def tensor(ref: TensorRef | None) -> Tensor | None:
        return None if ref is None else tensors[ref.index]

    return Reply(
        outputs=tuple(_output(o, tensor(o.tensor)) for o in model.outputs),
        gradients={} if model.gradients is None else {n: tensor(ref) for n, ref in model.gradients.items.items()},
        raised=None if model.raised is None else _raised(model.raised),
        mutated=tuple(model.mutated),
        modules=tuple(_facts(m) for m in model.modules),
        operations=None if model.operations is None else _operations(model.operations),
        stopped=tuple(_raised(each) for each in model.stopped),
        peak=model.peak,
        parts=tuple(model.parts),
    )


def _output(model: _Output, tensor: Tensor | None) -> Output:
    shape = None if model.shape is None else tuple(model.shape)
    if tensor is not None and tuple(tensor.shape) != shape:
        raise BadReply("a tensor's shape is not the one it states")
    return Output(model.kind, tensor, model.dtype, model.device, shape)


def _operations(model: _Operations) -> Operations:
    shapes, kernels = tuple(map(tuple, model.shapes)), tuple(model.kernels)
    return Operations(model.fused, tuple(model.made), model.mixed, model.recorded, model.stopped, shapes, kernels)


def _raised(model: _Raised) -> Raised:
    return Raised(model.type, tuple(model.bases), model.message, model.stage, model.line, model.part)


def _facts(model: _ModuleFacts) -> ModuleFacts:
    def entries(found: _Entries) -> dict[str, Entry]:
        return {name: Entry(tuple(e.shape), e.dtype, e.device) for name, e in found.items.items()}

    return ModuleFacts(
        entries(model.parameters),
        entries(model.buffers),
        model.training,
        model.changed,
        tuple(model.unloaded),
        model.attributes.items,
        {} if model.plain is None else entries(model.plain),
        model.alike,
    )
