"""Read a tar archive, member by member."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, cast

from .found_files import BadArchive, BadMember, Limits, Member, read_at_most, safe_path

_CHUNK = 1024 * 1024
_LATEST = 2.0**33  # seconds since 1970: in the year 2242
# Bytes of a header about headers, which the library reads into memory; and of all that speak of every member, which it copies
# to each: 200,000 names in 424 KB made 15 GB. `git archive` writes one, of 52 bytes.
_LONGEST, _ALL_GLOBAL = 64 * 1024, 1024
_ABOUT_HEADERS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_FAULTS = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, OverflowError, RecursionError)
_DAMAGED = "it is damaged, or neither zip nor tar"  # what is no zip is read as a tar, whatever it is called


def tar_members(file: BinaryIO, limits: Limits, most_bytes: int) -> Iterator[Member | tuple[str, BadMember]]:
    """Yield the files of the archive, or the name of one that is refused with the reason. Raises BadArchive.

    It is unpacked first, into a file without a name and up to a limit: a header of it may claim any size.
    """
    with tempfile.TemporaryFile() as plain:
        _unpack(file, plain, most_bytes)
        try:
            with tarfile.open(fileobj=plain, mode="r:", tarinfo=_with_short_headers()) as archive:
                last = None
                for info in archive:
                    if last is not None and info.offset <= last:
                        raise BadArchive(_DAMAGED)  # it leads back to what was read
                    last = info.offset
                    if not info.isdir():
                        yield _member(archive, info, limits)
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
            if cls.left < 0 or (header.type in _ABOUT_HEADERS and header.size > _LONGEST):
                raise BadArchive("its headers are longer than any that are needed")
            return header

    return ShortHeaders


def _member(archive: tarfile.TarFile, info: tarfile.TarInfo, limits: Limits) -> Member | tuple[str, BadMember]:
    try:
        if info.issym() or info.islnk():
            raise BadMember("is a link")
        if not info.isreg() or info.issparse():
            raise BadMember("is no regular file")
        return Member(safe_path(info.name, limits), _modified(info), partial(_read, archive, info))
    except BadMember as reason:
        return info.name, reason


def _modified(info: tarfile.TarInfo) -> float:
    """Return the time that the archive gives, which may be no number; 0.0 where no clock has shown it."""
    return float(info.mtime) if 0 <= info.mtime < _LATEST else 0.0


def _read(archive: tarfile.TarFile, info: tarfile.TarInfo, most: int) -> bytes:
    try:
        file = archive.extractfile(info)
        if file is None:
            raise BadMember("is no regular file")
        return read_at_most(cast(BinaryIO, file), most)
    except _FAULTS:
        raise BadMember("is damaged") from None


def _unpack(file: BinaryIO, plain: BinaryIO, most: int) -> None:
    """Write the archive without its compression. Raises BadArchive."""
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
    try:
        while chunk := opened.read(_CHUNK):
            size += len(chunk)
            if size > most:
                raise BadArchive("it unpacks to more than is read here")
            plain.write(chunk)
    except _FAULTS:
        raise BadArchive(_DAMAGED) from None
    plain.seek(0)
