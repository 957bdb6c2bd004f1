"""Read zip and tar archives, member by member. Archives come from students: nothing that they claim is believed."""

from __future__ import annotations

import bz2
import calendar
import gzip
import io
import lzma
import stat
import struct
import tarfile
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO, BinaryIO, cast

LONGEST = 255  # of a name, in characters
DEEPEST = 40  # folders within folders
TOO_LARGE, TOO_MANY = "it unpacks to more than is read here", "it has more files than are read here"
_DAMAGED = "it is damaged, or neither zip nor tar"  # what is no zip is read as a tar, whatever it is called
_FAULTS = (
    *(zipfile.BadZipFile, tarfile.TarError, struct.error, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, ValueError, OverflowError, RuntimeError),  # among these NotImplementedError, RecursionError
)


class BadMember(Exception):
    """The member is not taken. The text says why, for a sentence that begins with its path."""


class BadArchive(Exception):
    """The archive cannot be read. The text says why."""


@dataclass(frozen=True)
class Member:
    """A file in an archive. read: returns its content, or raises BadMember. refused: why it is not taken, if it is not."""

    name: str
    modified: float
    read: Callable[[int], bytes]
    refused: str = ""


def archive_members(file: BinaryIO, name: str, listed: int, unpacked: int) -> Iterator[Member]:
    """Yield the files of an archive, one after the other. Raises BadArchive.

    Args:
        file: the archive.
        name: its own name.
        listed: how many members a zip may list.
        unpacked: how many bytes a tar may unpack to.
    """
    if name.lower().endswith((".rar", ".7z")):
        raise BadArchive("it is of a kind that is not opened here")
    yield from _zip_members(file, listed) if zipfile.is_zipfile(file) else _tar_members(file, unpacked)


def safe_path(name: str) -> tuple[str, ...]:
    """Return the parts of a member's path. Raises BadMember where it leads out of the archive, or could not be shown."""
    text = unicodedata.normalize("NFC", name.replace("\\", "/"))
    if text.startswith("/") or (len(text) > 1 and text[1] == ":" and text[0].isalpha()):
        raise BadMember("has an absolute path")
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if ".." in parts:
        raise BadMember("has a path that leads out of the archive")
    if not parts or len(parts) > DEEPEST or any(len(part) > LONGEST for part in parts):
        raise BadMember("has a path that is too long or empty")
    if not all(part.isprintable() for part in parts):
        raise BadMember("has a name that cannot be shown")
    return parts


def _read(start: Callable[[], IO[bytes] | None], most: int) -> bytes:
    """Return a member's whole content. Raises BadMember if there is more than that."""
    try:
        with start() or io.BytesIO() as file:
            data = file.read(most + 1)
    except _FAULTS:
        raise BadMember("is damaged") from None
    if len(data) > most:
        raise BadMember(f"is larger than {most // 1024:,} KiB")
    return data


# Zip

_END, _END64, _SEE_END64 = b"PK\5\6", b"PK\6\6", 0xFFFFFFFF
_UTF8, _ENCRYPTED = 0x800, 0x1
_UNIX = 3  # the system whose file modes the upper half of external_attr holds
_ENTRY = 400  # bytes of a member in the directory, with a long name


def _zip_members(file: BinaryIO, listed: int) -> Iterator[Member]:
    if _directory_size(file) > listed * _ENTRY:
        raise BadArchive(TOO_MANY)  # before memory is taken for each of them
    try:
        archive = zipfile.ZipFile(file)
    except _FAULTS:
        raise BadArchive("it is damaged, or no zip at all") from None
    with archive:
        last = {info.filename: info for info in archive.infolist()}
        for info in archive.infolist():
            if not info.filename.endswith("/"):  # is_dir() fails on an empty name
                again = (
                    "" if last[info.filename] is info else "stands in the archive once more, and the last one counts"
                )
                read = partial(_read, partial(archive.open, info))
                yield Member(_name(info), _modified(info), read, again or _refused(info))


def _refused(info: zipfile.ZipInfo) -> str:
    """Return why this is no plain file that can be read; "" where it is one."""
    mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
    if "\0" in info.orig_filename:
        return "has a name that cannot be shown"
    if stat.S_IFMT(mode) and not stat.S_ISREG(mode):
        return "is a link" if stat.S_ISLNK(mode) else "is no regular file"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    is_known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    return "" if is_known else "is compressed in a way that is not read here"


def _name(info: zipfile.ZipInfo) -> str:
    """Return the member's name: macOS writes UTF-8 without saying so, and zipfile takes what does not say so for cp437."""
    try:
        return info.orig_filename if info.flag_bits & _UTF8 else info.orig_filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.orig_filename


def _modified(info: zipfile.ZipInfo) -> float:
    try:
        return float(calendar.timegm((*info.date_time, 0, 0, 0)))
    except (ValueError, OverflowError):
        return 0.0


def _directory_size(file: BinaryIO) -> int:
    """Return the size of the directory that the archive claims; where it claims several, the largest."""
    end = file.seek(0, 2)
    file.seek(max(0, end - 66_000))
    tail = file.read()
    file.seek(0)
    claims, at = [0], tail.find(_END)
    while at >= 0:
        if len(tail) >= at + 16 and (claim := struct.unpack_from("<L", tail, at + 12)[0]) < _SEE_END64:
            claims.append(claim)
        if at >= 76 and tail.startswith(_END64, at - 76):
            claims.append(struct.unpack_from("<Q", tail, at - 36)[0])
        at = tail.find(_END, at + 1)
    return min(max(claims), end)


# Tar

_CHUNK = 1024 * 1024
_LATEST = 2.0**33  # seconds since 1970: in the year 2242
# Bytes of a header about headers, which the library reads into memory; and of all that speak of every member, which it copies
# to each: 200,000 names in 424 KB made 15 GB. `git archive` writes one, of 52 bytes.
_LONGEST_HEADER, _ALL_GLOBAL = 64 * 1024, 1024
_ABOUT_HEADERS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)


def _tar_members(file: BinaryIO, unpacked: int) -> Iterator[Member]:
    """Unpack it first, into a file without a name and up to a limit: a header of it may claim any size."""
    with tempfile.TemporaryFile() as plain:
        try:
            _unpack(file, plain, unpacked)
            with tarfile.open(fileobj=plain, mode="r:", tarinfo=_with_short_headers()) as archive:
                last = -1
                for info in archive:
                    if info.offset <= last:
                        raise BadArchive(_DAMAGED)  # it leads back to what was read
                    last = info.offset
                    if not info.isdir():
                        modified = float(info.mtime) if 0 <= info.mtime < _LATEST else 0.0  # it may be no number
                        is_file = info.isreg() and not info.issparse()
                        refused = "is a link" if info.issym() or info.islnk() else "is no regular file" * (not is_file)
                        yield Member(info.name, modified, partial(_read, partial(archive.extractfile, info)), refused)
        except _FAULTS:
            raise BadArchive(_DAMAGED) from None


def _with_short_headers() -> type[tarfile.TarInfo]:
    """Return what the library reads one archive's headers into."""

    class ShortHeaders(tarfile.TarInfo):
        left = _ALL_GLOBAL

        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> ShortHeaders:
            """Return a header. Raises BadArchive for one that is longer than any that is needed."""
            header = super().frombuf(buf, encoding, errors)
            if header.type == tarfile.XGLTYPE:
                cls.left -= header.size
            if cls.left < 0 or (header.type in _ABOUT_HEADERS and header.size > _LONGEST_HEADER):
                raise BadArchive("its headers are longer than any that are needed")
            return header

    return ShortHeaders


def _unpack(file: BinaryIO, plain: BinaryIO, most: int) -> None:
    """Write the archive without its compression. Raises BadArchive, and what the libraries raise."""
    file.seek(0)
    start = file.read(6)
    file.seek(0)
    opened: BinaryIO = file
    if start.startswith(b"\x1f\x8b"):
        opened = cast(BinaryIO, gzip.GzipFile(fileobj=file))
    elif start.startswith(b"BZh"):
        opened = cast(BinaryIO, bz2.BZ2File(file))
    elif start.startswith(b"\xfd7zXZ"):
        opened = cast(BinaryIO, lzma.LZMAFile(file))  # noqa: SIM115, closes nothing that we need
    size = 0
    while chunk := opened.read(_CHUNK):
        size += len(chunk)
        if size > most:
            raise BadArchive(TOO_LARGE)
        plain.write(chunk)
    plain.seek(0)
