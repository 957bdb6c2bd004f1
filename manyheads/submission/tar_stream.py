"""Read a tar from its beginning to its end, one block of 512 bytes at a time.

Python's tarfile follows what a header claims before it returns a member: it reads maps of sparse
files, however long, and headers about headers, however many. Here only the form of a header is the
library's (`TarInfo.frombuf`, which reads no file). Every header counts towards the limits, the
clock is looked at before each one, and no map of a sparse file is ever read.

The format is documented in POSIX.1-2008, pax, and in GNU tar's manual, "Basic Tar Format" and
"Storing Sparse Files".
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any, cast

from .intake_limits import MIB, Limits, unopened

BLOCK = tarfile.BLOCKSIZE
# bytes of all headers about one member: 200,000 names in 424 KB made 15 GB
LONGEST_HEADER = 64 * 1024
LATEST = 2.0**33  # seconds since 1970: in the year 2242
_LONG_NAME, _LONG_LINK = tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK
_OF_NEXT = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)  # pax: about the next member
_OF_ALL = tarfile.XGLTYPE  # pax: about all members; git archive writes the commit in it
_ABOUT = (_LONG_NAME, _LONG_LINK, *_OF_NEXT, _OF_ALL)
# where a sparse header, and each block behind it, says that another one follows
_OLD_GOES_ON, _NEXT_GOES_ON = 482, 504
_DIGITS = 20  # of a number in a pax header
_TEXT = {"encoding": "utf-8", "errors": "surrogateescape"}
_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ"


@dataclass(frozen=True)
class TarMember:
    """A member of a tar.

    refused: why its content is not read, "" for a regular file. modified: seconds since 1970, or 0.
    """

    name: str
    size: int
    modified: float = 0.0
    refused: str = ""
    is_folder: bool = False


@dataclass
class _About:
    """What headers say of the next member. header_bytes: how long they are together."""

    name: str = ""
    size: int | None = None
    modified: float | None = None
    is_sparse: bool = False
    header_bytes: int = 0


@dataclass
class WatchedFile:
    """A packed file.

    Each read looks at the clock, for a packed stream may unpack to nothing for minutes.
    """

    file: IO[bytes]
    budget: Limits

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. Raises Closed."""
        self.budget.take()
        return self.file.read(size)


def unpacked(file: IO[bytes], budget: Limits) -> IO[bytes]:
    """Return the bytes of a tar, out of gzip, bzip2 or xz if they are in one of these."""
    file.seek(0)
    start = file.read(len(_XZ))
    file.seek(0)
    packed = cast(Any, WatchedFile(file, budget))
    if start.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=packed, mode="rb"))
    if start.startswith(_BZIP2):
        packed.write = None  # bz2 and lzma ask for both methods, or take it for a path
        return cast(IO[bytes], bz2.BZ2File(packed))
    if start.startswith(_XZ):
        packed.write = None
        return cast(IO[bytes], lzma.LZMAFile(packed))
    return file


@dataclass
class TarStream:
    """A tar that is read once. budget: what every header, and the time, are counted against."""

    file: IO[bytes]
    budget: Limits
    _remaining: int = field(
        default=0, init=False
    )  # bytes of the current member that have not been read
    _block: bytes = field(default=b"", init=False)  # the last header

    def members(self) -> Iterator[TarMember]:
        """Yield each member. Raises Closed, and tarfile.TarError where the file is damaged."""
        is_first = True
        attributes = _About()
        while header := self._next_header(must_exist=is_first or attributes.header_bytes > 0):
            is_first = False
            if header.type in _ABOUT:
                self._read_about(header, attributes)
                continue
            member = _member(header, attributes)
            attributes = _About()
            if header.type == tarfile.GNUTYPE_SPARSE:
                self._pass_over_old_map(header)
            has_content = header.isreg() or header.type not in tarfile.SUPPORTED_TYPES
            self._remaining = member.size if has_content else 0
            padding = -self._remaining % BLOCK
            yield member
            self._pass_over(self._remaining)
            self.file.read(padding)  # the last one may be missing

    def content(self, most: int) -> bytes:
        """Return the content of the current member, cut at so many bytes.

        Raises tarfile.TarError where some is missing.
        """
        content = self._exactly(min(self._remaining, most))
        self._remaining -= len(content)
        return content

    def _next_header(self, *, must_exist: bool) -> tarfile.TarInfo | None:
        """Return the next header; None at the end.

        As in the library, what is no header ends the archive, too, except at its beginning, or
        after a header about a header.
        """
        self.budget.take(entries=1)
        block = self.file.read(BLOCK)
        try:
            if block == bytes(BLOCK):
                return None
            header = tarfile.TarInfo.frombuf(block, **_TEXT)
            if header.size < 0:
                raise tarfile.HeaderError("a negative size")
        except tarfile.HeaderError as error:
            if must_exist:
                raise tarfile.ReadError(str(error)) from None
            return None
        self._block = block
        return header

    def _read_about(self, header: tarfile.TarInfo, attributes: _About) -> None:
        """Take in a header about the next member.

        Raises Closed where it is longer than any that is needed.
        """
        attributes.header_bytes += BLOCK + header.size
        if attributes.header_bytes > LONGEST_HEADER:
            raise unopened("its headers are longer than any that are needed")
        data = self._exactly(header.size)
        self._exactly(-header.size % BLOCK)
        if header.type == _LONG_NAME:
            attributes.name = data.partition(b"\0")[0].decode(**_TEXT)
        if header.type not in _OF_NEXT:
            return
        for keyword, value in _pax_records(data):
            if keyword == "path":
                attributes.name = value
            elif keyword == "size":
                attributes.size = _number(value)
            elif keyword == "mtime":
                attributes.modified = _seconds(value)
            elif keyword.startswith("GNU.sparse."):
                attributes.is_sparse = True

    def _pass_over_old_map(self, header: tarfile.TarInfo) -> None:
        """Pass over the blocks behind a header of GNU's old sparse format, each of which counts as
        a header.
        """
        goes_on = self._block[_OLD_GOES_ON]
        while goes_on:
            self.budget.take(entries=1)
            goes_on = self._exactly(BLOCK)[_NEXT_GOES_ON]

    def _pass_over(self, size: int) -> None:
        while size > 0:
            self.budget.take()
            size -= len(self._exactly(min(size, MIB)))

    def _exactly(self, size: int) -> bytes:
        data = self.file.read(size) if size else b""
        if len(data) < size:
            raise tarfile.ReadError("unexpected end of data")
        return data


def _member(header: tarfile.TarInfo, attributes: _About) -> TarMember:
    size = header.size if attributes.size is None else attributes.size
    modified = float(header.mtime) if attributes.modified is None else attributes.modified
    refused = ""
    if header.issym() or header.islnk():
        refused = "is a link"
    elif not header.isreg() or header.type == tarfile.GNUTYPE_SPARSE or attributes.is_sparse:
        refused = "is no regular file"
    is_time = 0 <= modified < LATEST
    return TarMember(
        attributes.name or header.name, size, modified if is_time else 0.0, refused, header.isdir()
    )


def _pax_records(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the keywords and values of a pax header: lines such as "18 path=some/name".

    Raises tarfile.ReadError.
    """
    start = 0
    while start < len(data) and data[start] != 0:
        length, blank, _ = data[start : start + _DIGITS].partition(b" ")
        end = start + _number(length.decode("latin-1"))
        keyword, equals, value = data[start + len(length) + 1 : end].partition(b"=")
        if not blank or not equals or not value.endswith(b"\n") or end > len(data):
            raise tarfile.ReadError("a damaged pax header")
        yield keyword.decode(**_TEXT), value[:-1].decode(**_TEXT)
        start = end


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise tarfile.ReadError("no number in a pax header")
    return int(text)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
