"""Read the text of a file of any kind: in any encoding, and of all files in it if it is an archive.

File names do not matter: a git history contains files of every kind under any name.
"""

from __future__ import annotations

import html
import importlib
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import IO

LIMIT = 64 << 20  # bytes of one unpacked file: an archive may unpack to a thousand times its size
DEPTH = 4  # how deep archives may be nested
MARKS = (  # UTF-32 comes first, because its byte order mark starts with UTF-16's
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
# Pictures, PDF, films, fonts, arrays and .DS_Store: files that are often beside a course. Only their uncompressed letters
# are compared. Refusing such files would exclude every course with slides.
MEDIA = re.compile(
    rb"\x89PNG\r\n|\xff\xd8\xff|GIF8|RIFF....WEBP|%PDF-|....ftyp|wOF[F2]|\x93NUMPY|\x00\x00\x00\x01Bud1", re.DOTALL
)
LETTERS = re.compile(rb"[\t\n\r\x20-\x7e]{10,}")
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  # in no text, but early in anything compressed or encrypted
MARKUP = re.compile(r"<[^<>]*>")

Members = Iterator[tuple[str, IO[bytes]]]  # the suffix to the archive's name, and the member
Unpack = Callable[[bytes], Members]


class UnreadableError(Exception):
    """A file cannot be read, so it cannot be compared with what is hidden. The text names it."""


@dataclass(frozen=True)
class Part:
    """A file that is not packed. inner: texts that it contains in another form, such as the cells of a notebook."""

    name: str
    content: bytes
    text: str
    inner: tuple[str, ...] = ()


def parts(name: str, content: bytes, depth: int = DEPTH) -> Iterator[Part]:
    """Yield the file, or all files that are packed in it. Raises UnreadableError."""
    unpack = next((unpack for begins, unpack in PACKED if begins.match(content)), None)
    if unpack is None:
        yield _part(name, content)
        return
    try:
        for inside, file in unpack(content):
            packed = file.read(LIMIT + 1)
            if len(packed) > LIMIT or not depth:
                raise UnreadableError(f"{name} cannot be read: too much is packed in it")
            yield from parts(name + inside, packed, depth - 1)
    except UnreadableError:
        raise
    except Exception:  # the formats have different errors: damaged, encrypted, an unknown method
        raise UnreadableError(f"{name} cannot be read: it is packed and cannot be unpacked") from None


def _zipped(content: bytes) -> Members:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        for member in archive.infolist():
            yield f": {member.filename}", archive.open(member)


def _tarred(content: bytes) -> Members:
    with tarfile.open(fileobj=BytesIO(content), mode="r:") as archive:
        for member in archive:
            if member.isreg() and (file := archive.extractfile(member)):
                yield f": {member.name}", file


def _by(module: str) -> Unpack:
    """Unpack a single compressed file. The module is imported late, because a Python may lack some of them."""

    def unpack(content: bytes) -> Members:
        with importlib.import_module(module).open(BytesIO(content)) as file:
            yield "", file

    return unpack


PACKED: tuple[tuple[re.Pattern[bytes], Unpack], ...] = (
    (re.compile(rb"PK\x03\x04"), _zipped),
    (re.compile(rb".{257}ustar", re.DOTALL), _tarred),
    (re.compile(rb"\x1f\x8b\x08"), _by("gzip")),
    (re.compile(rb"BZh[1-9]1AY&SY"), _by("bz2")),
    (re.compile(rb"\xfd7zXZ\0"), _by("lzma")),
)


def _part(name: str, content: bytes) -> Part:
    try:
        header = _json(_safetensors_header(content))
        if header is not None:
            return Part(name, content, "", (_joined(header),))
        text = _text(content)
        if text is None:
            raise UnreadableError(f"{name} cannot be read: it is neither text nor an archive")
        return Part(name, text.encode(), text, tuple(_inner(text)))
    except RecursionError:
        raise UnreadableError(f"{name} cannot be read: it is nested too deep") from None


def _safetensors_header(content: bytes) -> str:
    """Return the header of a safetensors file, whose rest is numbers; "" if it is not such a file."""
    size = int.from_bytes(content[:8], "little")
    return content[8 : 8 + size].decode("utf-8", "replace") if size <= len(content) - 8 else ""


def _text(content: bytes) -> str | None:
    """Return the text of a file in any encoding; None if it is not text."""
    for mark, encoding in MARKS:
        if content.startswith(mark):
            try:
                return content.decode(encoding)
            except UnicodeDecodeError:
                return None
    dense = content.replace(b"\0", b"")  # UTF-16 and UTF-32 without their marks
    try:
        return dense.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if MEDIA.match(content):
        return "\n".join(found.decode("ascii") for found in LETTERS.findall(dense))
    return None if CONTROL.search(content) else content.decode("latin-1")


def _inner(text: str) -> Iterator[str]:
    """Yield the texts of a notebook's cells, and the text that an HTML page shows."""
    if (data := _json(text)) is not None:
        yield _joined(data)
    if "</" in text:
        yield html.unescape(MARKUP.sub("", text))


def _joined(value: object) -> str:
    """Return the different texts in a JSON value: a fingerprint file repeats the same names thousands of times."""
    return "\n".join(dict.fromkeys(_texts(value)))


def _texts(value: object) -> Iterator[str]:
    """Yield all texts in a JSON value. Texts that are JSON are parsed; lists of texts are also joined."""
    if isinstance(value, str):
        inner = _json(value)
        yield from _texts(inner) if isinstance(inner, dict | list) else (value,)
    elif isinstance(value, list) and all(isinstance(part, str) for part in value):
        yield "".join(value)
        yield from value
    elif isinstance(value, dict | list):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            if isinstance(part, str | dict | list):
                yield from _texts(part)


def _json(text: str) -> object:
    """Return the list or object that the text is in JSON; None if it is neither."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
