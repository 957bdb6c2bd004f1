"""Messages as bytes: data only, never a pickle.

`pack` and `unpack` carry a JSON body and a list of tensors in one safetensors file; `to_body` and
`from_body` turn our message classes into such a body and back. The judge reads replies with a
stricter reader (`manyheads.box.replies`).
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from . import messages
from .messages import MOST_AXES, NAME_LIMIT, plain

READY = b"ready"  # the first message of a zygote on its control socket
LENGTH = struct.Struct(">Q")
_HEADER_LENGTH = struct.Struct("<Q")
_CLASSES = {
    name: value
    for name, value in vars(messages).items()
    if isinstance(value, type) and dataclasses.is_dataclass(value)
}


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is dataclasses.MISSING:
        return field.default
    return field.default_factory()


def _defaults(message_class: Any) -> dict[str, object]:
    return {field.name: _default(field) for field in dataclasses.fields(message_class)}


_FIELDS: dict[type, dict[str, object]] = {value: _defaults(value) for value in _CLASSES.values()}
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.bool: "BOOL",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
}
_BY_NAME = {name: dtype for dtype, name in _DTYPES.items()}


def pack(body: object, tensors: list[Tensor]) -> bytes:
    """Return one message as bytes: the length of a safetensors file, and the file.

    The file is written here because the library's writer takes five times as long.

    Source: the format's specification in the safetensors README.

    Args:
        body: the JSON body.
        tensors: the tensors to which the body refers, on the CPU.
    """
    chunks = [header(body, tensors)]
    for tensor in tensors:
        # a single number is contiguous with any stride
        flat = tensor.contiguous().as_strided((tensor.numel(),), (1,))
        chunks.append(flat.view(torch.uint8).numpy().tobytes())
    return b"".join([LENGTH.pack(sum(map(len, chunks))), *chunks])


def header(body: object, tensors: list[Tensor]) -> bytes:
    """Return the part of a safetensors file before the tensors' numbers."""
    entries: dict[str, object] = {"__metadata__": {"body": json.dumps(body)}}
    end = 0
    for i, tensor in enumerate(tensors):
        start = end
        end += tensor.nbytes
        dtype = _DTYPES.get(tensor.dtype, str(tensor.dtype))
        entries[f"t{i}"] = {
            "dtype": dtype,
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)  # aligns the numbers
    return _HEADER_LENGTH.pack(len(text)) + text


def unpack(payload: bytearray) -> tuple[object, list[Tensor]]:
    """Return the body and the tensors of one message, without its length.

    The tensors share the memory of the payload, which must not be used for anything else. The file
    is read here because the library copies the tensors, and takes three times as long.

    Raises an exception of any type if the payload is no message. A message need not be written
    exactly as `header` would write it.
    """
    (length,) = _HEADER_LENGTH.unpack_from(payload)
    start = _HEADER_LENGTH.size + length
    entries = json.loads(payload[_HEADER_LENGTH.size : start])
    body = json.loads(entries.pop("__metadata__")["body"])
    return body, [_tensor(entries[f"t{i}"], payload, start) for i in range(len(entries))]


def _tensor(entry: Mapping[str, Any], payload: bytearray, start: int) -> Tensor:
    """Return a tensor by its entry in the header. Raises ValueError if its size is impossible.

    Args:
        entry: the tensor's dtype, shape and offsets.
        payload: the file.
        start: the offset of the tensors' numbers in the file.
    """
    dtype = _BY_NAME[entry["dtype"]]
    shape = entry["shape"]
    begin, after = entry["data_offsets"]
    if len(shape) > MOST_AXES or not all(0 <= n < 1 << 40 for n in shape):
        raise ValueError("a tensor's shape is out of bounds")
    count = math.prod(shape)  # torch's own product begins again at 2^64
    if count * dtype.itemsize != after - begin:
        raise ValueError("a tensor's size does not fit its shape")
    if not count:
        return torch.empty(shape, dtype=dtype)
    flat = torch.frombuffer(payload, dtype=torch.uint8, count=after - begin, offset=start + begin)
    if (start + begin) % dtype.itemsize:  # not aligned, after a tensor with smaller numbers
        flat = flat.clone()
    return flat.view(dtype).view(shape)


def to_body(value: object, tensors: list[Tensor]) -> object:
    """Return the JSON body of a message or a value in it, and append its tensors to `tensors`.

    Fields that have their default value are left out. Tensors on the meta device are a part of the
    body. Lone surrogates in texts are written as backslash escapes.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return plain(value, len(value))
    if isinstance(value, Tensor) and value.device.type == "meta":
        return {"$": "meta", "shape": list(value.shape), "dtype": messages.dtype_name(value.dtype)}
    if isinstance(value, Tensor):
        tensors.append(bare(value).resolve_neg().contiguous())
        return {"$": "tensor", "index": len(tensors) - 1}
    if isinstance(value, tuple):
        return [to_body(item, tensors) for item in value]
    if isinstance(value, list):
        return {"$": "list", "items": [to_body(item, tensors) for item in value]}
    if (fields := _FIELDS.get(type(value))) is not None:
        body: dict[str, object] = {"$": type(value).__name__}
        for name, default in fields.items():
            field_value = getattr(value, name)
            if field_value is not default and (
                type(field_value) is not type(default) or field_value != default
            ):
                body[name] = to_body(field_value, tensors)
        return body
    assert isinstance(value, Mapping)
    return {
        "$": "map",
        "items": {plain(key, NAME_LIMIT): to_body(item, tensors) for key, item in value.items()},
    }


def bare(tensor: Tensor) -> Tensor:
    """Return the plain tensor behind a subclass, without calling the subclass's code."""
    with torch._C.DisableTorchFunctionSubclass():
        return (
            tensor.detach() if type(tensor) is Tensor else Tensor.detach(tensor).as_subclass(Tensor)
        )


def from_body(body: object, tensors: list[Tensor]) -> object:
    """Return the message from which `to_body` made this body, with these tensors."""
    if isinstance(body, list):
        return tuple(from_body(item, tensors) for item in body)
    if not isinstance(body, dict):
        return body
    tag = body["$"]
    if tag == "tensor":
        return tensors[body["index"]]
    if tag == "meta":
        return torch.empty(body["shape"], dtype=getattr(torch, body["dtype"]), device="meta")
    if tag == "list":
        return [from_body(item, tensors) for item in body["items"]]
    if tag == "map":
        return {key: from_body(item, tensors) for key, item in body["items"].items()}
    fields = {key: from_body(item, tensors) for key, item in body.items() if key != "$"}
    return _CLASSES[tag](**fields)


def encode(message: object) -> bytes:
    """Return the message as bytes, with its length."""
    tensors: list[Tensor] = []
    body = to_body(message, tensors)
    return pack(body, tensors)


def decode(data: bytes) -> object:
    """Return the message in the bytes that `encode` made. Its tensors share no memory with them."""
    return from_body(*unpack(bytearray(memoryview(data)[LENGTH.size :])))


def receive(stream: io.BufferedReader) -> object | None:
    """Wait for the next message, and return it, or None if the judge has closed the connection."""
    length = stream.read(LENGTH.size)
    if len(length) < LENGTH.size:
        return None
    payload = bytearray(LENGTH.unpack(length)[0])
    return from_body(*unpack(payload)) if stream.readinto(payload) == len(payload) else None
