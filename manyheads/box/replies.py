"""Read the bytes from an attempt as hostile input.

A reply is accepted only if it has no fields but those that its dataclass declares, each within the
bounds of its annotation, and if writing the parsed header again gives the same bytes. Otherwise
BadReply is raised. The readers of all annotations are made once (`_reader`), and each message is
read in one pass.
"""

from __future__ import annotations

import dataclasses
import re
import struct
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from torch import Tensor

from .worker import wire
from .worker.messages import TENSOR_LIMIT, Between, Raised, Reply, Traced

HEADER_LIMIT = 1 << 20  # bytes of JSON
# reads a part of a body, given the message's tensors
_Read = Callable[[Any, Sequence[Tensor]], Any]


class BadReply(Exception):
    """The bytes are not a reply.

    The text completes "it sent something that is not an answer: …".
    """


class _NotAsAgreed(Exception):
    """A value does not fit its annotation.

    `args` are the names of the fields that lead to the value. They come from our dataclasses, never
    from the message.
    """


def read_reply(payload: bytes) -> Reply:
    """Return the reply in these bytes. Raises BadReply, and nothing else, if they hold none."""
    return _consistent(cast(Reply, _read(Reply, payload)))


def read_traced(payload: bytes) -> Traced:
    """Return the traced call in these bytes. Raises BadReply, and nothing else, if they hold none.

    It is also refused if its order names a step that it does not have.
    """
    traced = cast(Traced, _read(Traced, payload))
    if any(index >= len(traced.steps) for index in traced.order):
        raise BadReply("it names a step that is not in it")
    _consistent(traced.reply)
    return traced


def _consistent(reply: Reply) -> Reply:
    """Return the same reply. Raises BadReply if two of its fields contradict each other."""
    if any(o.tensor is not None and tuple(o.tensor.shape) != o.shape for o in reply.outputs):
        raise BadReply("a tensor's shape is not the one it states")
    for entry_map in (
        entries for facts in reply.modules for entries in (facts.buffers, facts.plain)
    ):
        if [*entry_map] != [str(index) for index in range(len(entry_map))]:
            raise BadReply("it counts tensors of a module in another way than agreed")
    return reply


def split(payload: bytes, count: int) -> list[bytes]:
    """Split the answer to a batch, and return the bytes of each reply without its length.

    Raises BadReply, and nothing else, unless there are exactly `count` replies.
    """
    replies, at = [], 0
    for _ in range(count):
        begin = at + wire.LENGTH.size
        if begin > len(payload):
            raise BadReply("it has fewer replies than requested")
        (length,) = wire.LENGTH.unpack_from(payload, at)
        at = begin + length
        replies.append(payload[begin:at])
    if at != len(payload):
        raise BadReply("it has another number of replies than requested")
    return replies


def within_file(reply: Reply, lines: int) -> Reply:
    """Return the reply without line numbers beyond the file's last line.

    An attempt could use such numbers to carry out information. In exceptions they become None, and
    in `parts` the last line.
    """
    if reply.raised is None and not reply.stopped and not reply.parts:
        return reply

    def bounded_exception(raised: Raised) -> Raised:
        line_numbers = {
            name: n
            for name in ("line", "part")
            if (n := getattr(raised, name)) is not None and n <= lines
        }
        return dataclasses.replace(
            raised, line=line_numbers.get("line"), part=line_numbers.get("part")
        )

    stopped, part_lines = (
        tuple(map(bounded_exception, reply.stopped)),
        tuple(min(line, lines) for line in reply.parts),
    )
    return dataclasses.replace(
        reply,
        raised=reply.raised and bounded_exception(reply.raised),
        stopped=stopped,
        parts=part_lines,
    )


def _read(message_type: type, payload: bytes) -> object:
    """Return the message of this type in these bytes. Raises BadReply, and nothing else."""
    if struct.unpack("<Q", payload[:8].ljust(8, b"\xff"))[0] > min(HEADER_LIMIT, len(payload) - 8):
        raise BadReply("its header is too long")
    try:
        body, tensors = wire.unpack(bytearray(payload))
        if len(tensors) > TENSOR_LIMIT:
            raise BadReply("it has more tensors than agreed")
        head = wire.header(body, tensors)
        if len(payload) != len(head) + sum(t.nbytes for t in tensors) or not payload.startswith(
            head
        ):
            raise BadReply("it is not written as agreed")
        return _reader(message_type)(body, tensors)
    except BadReply:
        raise
    except _NotAsAgreed as error:
        subject = f"its field {'.'.join(error.args)!r}" if error.args else "it"
        raise BadReply(f"{subject} is not as agreed") from None
    except Exception as error:  # the bytes are hostile: a parser may raise anything
        raise BadReply(f"it cannot be read ({type(error).__name__})") from None


@cache
def _reader(annotation: Any) -> _Read:
    """Return a function that reads a value of this annotation, and raises _NotAsAgreed or BadReply.

    The function gets a part of the message's body, and the message's tensors.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        unbounded, bound = arguments
        return _bounded_reader(_reader(unbounded), bound)
    if origin in (Union, types.UnionType):
        # None comes first, because a complaint names the field that the last reader refused.
        none_first = sorted(arguments, key=lambda argument: argument is not types.NoneType)
        return _either([_reader(argument) for argument in none_first])
    if origin is tuple:
        return _list(_reader(arguments[0]))
    if origin is Mapping:
        return _map(_reader(arguments[0]), _reader(arguments[1]))
    if annotation in (Tensor, str):
        return _tensor if annotation is Tensor else _text
    return _record(annotation) if dataclasses.is_dataclass(annotation) else _plain(annotation)


def _plain(expected_type: type) -> _Read:
    def read(value: Any, tensors: Sequence[Tensor]) -> Any:
        if type(value) is not expected_type:
            raise _NotAsAgreed
        return value

    return read


def _text(value: Any, tensors: Sequence[Tensor]) -> str:
    """Return a text. A text with a lone surrogate is refused, because it cannot be encoded."""
    if type(value) is not str or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise _NotAsAgreed
    return value


def _bounded_reader(
    unbounded: _Read, bound: Between | frozenset[object] | re.Pattern[str]
) -> _Read:
    """Return a reader that refuses values out of bounds.

    A bound is the allowed values, a pattern of the whole text, or the limits of `_size`.
    """

    def read(value: Any, tensors: Sequence[Tensor]) -> Any:
        parsed = unbounded(value, tensors)
        if isinstance(bound, frozenset):
            is_within = parsed in bound
        elif isinstance(bound, re.Pattern):
            is_within = bound.fullmatch(parsed) is not None
        else:
            is_within = bound.minimum <= _size(parsed) <= bound.maximum
        if not is_within:
            raise _NotAsAgreed
        return parsed

    return read


def _size(parsed: Any) -> int:
    """Return a whole number itself, and the number of elements of any other value."""
    if type(parsed) is int:
        return parsed
    return parsed.numel() if type(parsed) is Tensor else len(parsed)


def _either(readers: Sequence[_Read]) -> _Read:
    """Return a reader that tries these readers in order."""

    def read(value: Any, tensors: Sequence[Tensor]) -> Any:
        for reader in readers[:-1]:
            try:
                return reader(value, tensors)
            except _NotAsAgreed:
                continue
        return readers[-1](value, tensors)

    return read


def _list(read_element: _Read) -> _Read:
    def read(value: Any, tensors: Sequence[Tensor]) -> Any:
        if type(value) is not list:
            raise _NotAsAgreed
        return tuple([read_element(element, tensors) for element in value])

    return read


def _map(key: _Read, read_value: _Read) -> _Read:
    def read(value: Any, tensors: Sequence[Tensor]) -> Any:
        items = _fields(value, "map").get("items")
        if type(items) is not dict or len(value) != 2:
            raise _NotAsAgreed
        return {key(name, tensors): read_value(entry, tensors) for name, entry in items.items()}

    return read


def _tensor(value: Any, tensors: Sequence[Tensor]) -> Tensor:
    index = _fields(value, "tensor").get("index")
    if type(index) is not int or index < 0 or len(value) != 2:
        raise _NotAsAgreed
    return tensors[index]


def _record(record_type: Any) -> _Read:
    """Return a reader of a dataclass, each field by its annotation.

    A field may be missing if it has a default. A field that is not declared raises BadReply.
    """
    readers = {
        name: _reader(annotation)
        for name, annotation in get_type_hints(record_type, include_extras=True).items()
    }

    def read(value: Any, tensors: Sequence[Tensor]) -> Any:
        values = {}
        for name, field_body in _fields(value, record_type.__name__).items():
            if name == "$":
                continue
            if name not in readers:
                raise BadReply("it has a field that is not agreed")
            try:
                values[name] = readers[name](field_body, tensors)
            except _NotAsAgreed as error:
                raise _NotAsAgreed(name, *error.args) from None
        try:
            return record_type(**values)
        except TypeError:  # a field is missing that has no default
            raise _NotAsAgreed from None

    return read


def _fields(value: Any, tag: str) -> dict[str, Any]:
    """Return the value if it is a dict with this tag. Raises _NotAsAgreed if not."""
    if type(value) is not dict or value.get("$") != tag:
        raise _NotAsAgreed
    return value
