"""Messages as bytes: data only, never a pickle.

`pack` and `unpack` carry a JSON body and a list of tensors in one safetensors
file; `to_body` and `from_body` turn our message classes into such a body. This
side trusts its peer (the judge); the judge reads replies with a stricter reader
of its own (`manyheads.box.replies`).
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from . import answers, messages
from .text import NAME_LIMIT, plain

READY = b"ready"  # the first message of a zygote on its control socket
LENGTH = struct.Struct(">Q")
_HEADER_LENGTH = struct.Struct("<Q")
_AT_ONCE = 1 << 20  # bytes
_CLASSES = {
    name: value
    for name, value in (vars(messages) | vars(answers)).items()
    if isinstance(value, type) and dataclasses.is_dataclass(value)
}
_FIELDS: dict[type, tuple[str, ...]] = {
    value: tuple(field.name for field in dataclasses.fields(value)) for value in _CLASSES.values()
}
_DEFAULTS: dict[type, dict[str, object]] = {
    value: {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(value)
    }
    for value in _CLASSES.values()
}
_NUMBERS, _SEQUENCES = (bool, int, float), (tuple, list)
_DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.bool: "BOOL",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
}  # fmt: skip
_BY_NAME = {name: dtype for dtype, name in _DTYPES.items()}


def pack(body: object, tensors: list[Tensor]) -> bytes:
    """Return one framed message: a safetensors file. It is written here because the library's writer takes five times as long.

    Source: the format's specification in the safetensors README.
    """
    header: dict[str, object] = {"__metadata__": {"body": json.dumps(body)}}
    chunks, end = [], 0
    for i, tensor in enumerate(tensors):
        flat = tensor.contiguous().as_strided((tensor.numel(),), (1,))  # a single number is contiguous with any stride
        data = flat.view(torch.uint8).numpy().tobytes()
        start, end = end, end + len(data)
        header[f"t{i}"] = {
            "dtype": _DTYPES.get(tensor.dtype, str(tensor.dtype)), "shape": list(tensor.shape), "data_offsets": [start, end]
        }  # fmt: skip
        chunks.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # aligns the data
    return b"".join([LENGTH.pack(8 + len(text) + end), _HEADER_LENGTH.pack(len(text)), text, *chunks])


def unpack(payload: bytearray) -> tuple[object, list[Tensor]]:
    """Return the body and the tensors of one message, without its length. The tensors lie in the payload, which nobody else uses.

    They are read here because the library copies them, and takes three times as long.
    """
    (length,) = _HEADER_LENGTH.unpack_from(payload)
    start = _HEADER_LENGTH.size + length
    header = json.loads(payload[_HEADER_LENGTH.size : start])
    body = json.loads(header.pop("__metadata__")["body"])
    return body, [_tensor(header[f"t{i}"], payload, start) for i in range(len(header))]


def _tensor(entry: Mapping[str, Any], payload: bytearray, start: int) -> Tensor:
    dtype, (first, after) = _BY_NAME[entry["dtype"]], entry["data_offsets"]
    if first == after:
        return torch.empty(entry["shape"], dtype=dtype)
    flat = torch.frombuffer(payload, dtype=torch.uint8, count=after - first, offset=start + first)
    if (start + first) % dtype.itemsize:  # behind numbers of fewer bytes
        flat = flat.clone()
    return flat.view(dtype).view(entry["shape"])


def to_body(value: object, tensors: list[Tensor]) -> object:
    """Return the JSON body of a message. Fields with their default are left out; tensors are appended to `tensors`."""
    if value is None or isinstance(value, _NUMBERS):
        return value
    if isinstance(value, str):
        return plain(value, len(value))
    if isinstance(value, Tensor) and value.device.type == "meta":
        return {"$": "meta", "shape": list(value.shape), "dtype": answers.dtype_name(value.dtype)}
    if isinstance(value, Tensor):
        tensors.append(bare(value).resolve_neg().contiguous())
        return {"$": "tensor", "index": len(tensors) - 1}
    if isinstance(value, _SEQUENCES):
        return [to_body(item, tensors) for item in value]
    if (fields := _FIELDS.get(type(value))) is not None:
        body: dict[str, object] = {"$": type(value).__name__}
        defaults = _DEFAULTS[type(value)]
        for name in fields:
            part, default = getattr(value, name), defaults[name]
            if part is not default and (type(part) is not type(default) or part != default):
                body[name] = to_body(part, tensors)
        return body
    assert isinstance(value, Mapping)
    return {"$": "map", "items": {plain(key, NAME_LIMIT): to_body(item, tensors) for key, item in value.items()}}


def bare(tensor: Tensor) -> Tensor:
    """Return the plain tensor behind a subclass, without calling the subclass's code."""
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.detach() if type(tensor) is Tensor else Tensor.detach(tensor).as_subclass(Tensor)


def from_body(body: object, tensors: list[Tensor]) -> object:
    """Return the message that `to_body` made this body from."""
    if isinstance(body, list):
        return tuple(from_body(item, tensors) for item in body)
    if not isinstance(body, dict):
        return body
    kind = body["$"]
    if kind == "tensor":
        return tensors[body["index"]]
    if kind == "meta":
        return torch.empty(body["shape"], dtype=getattr(torch, body["dtype"]), device="meta")
    if kind == "map":
        return {key: from_body(item, tensors) for key, item in body["items"].items()}
    fields = {key: from_body(item, tensors) for key, item in body.items() if key != "$"}
    return _CLASSES[kind](**fields)


def encode(message: object) -> bytes:
    """Return a framed message."""
    tensors: list[Tensor] = []
    body = to_body(message, tensors)
    return pack(body, tensors)


def decode(data: bytes) -> object:
    """Return the message in the bytes that `encode` made, with tensors of its own."""
    return from_body(*unpack(bytearray(memoryview(data)[LENGTH.size :])))


class Stream(Protocol):
    """A connection to the judge: a socket or `pipes.Pipes`."""

    def recv_into(self, into: memoryview, /) -> int:
        """Receive into this memory. Returns how many bytes; 0 if the judge has closed the connection."""

    def sendall(self, data: bytes, /) -> None:
        """Send all of it."""


def receive(connection: Stream) -> object | None:
    """Return the next message, or None if the judge has closed the connection."""
    header = _exactly(connection, LENGTH.size)
    if header is None:
        return None
    payload = _exactly(connection, LENGTH.unpack(header)[0])
    return None if payload is None else from_body(*unpack(payload))


def _exactly(connection: Stream, count: int) -> bytearray | None:
    data = bytearray(count)
    left = memoryview(data)
    while left:
        received = connection.recv_into(left[:_AT_ONCE])
        if not received:
            return None
        left = left[received:]
    return data
