"""Read a zip archive, member by member."""

from __future__ import annotations

import calendar
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from .found_files import BadArchive, BadMember, Limits, Member, read_at_most, safe_path

_END, _END64, _SEE_END64 = b"PK\5\6", b"PK\6\6", 0xFFFFFFFF
_UTF8, _ENCRYPTED = 0x800, 0x1
_UNIX = 3  # the system whose file modes the upper half of external_attr holds
_ENTRY = 400  # bytes of a member in the directory, with a long name
_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    struct.error,
)


def zip_members(file: BinaryIO, limits: Limits, most: int) -> Iterator[Member | tuple[str, BadMember]]:
    """Yield the files of the archive, or the name of one that is refused with the reason. Raises BadArchive.

    most: how many members it may list.
    """
    if _directory_size(file) > most * _ENTRY:
        raise BadArchive("it has more files than are read here")  # before memory is taken for each of them
    try:
        archive = zipfile.ZipFile(file)
    except _FAULTS:
        raise BadArchive("it is damaged, or no zip at all") from None
    with archive:
        last = {info.filename: info for info in archive.infolist()}
        for info in archive.infolist():
            if info.filename.endswith("/"):  # is_dir() fails on an empty name
                continue
            name = _name(info)
            try:
                if last[info.filename] is not info:
                    raise BadMember("stands in the archive once more, and the last one counts")
                _refuse(info)
                path = safe_path(name, limits)
            except BadMember as reason:
                yield name, reason
            else:
                yield Member(path, _modified(info), partial(_read, archive, info))


def _refuse(info: zipfile.ZipInfo) -> None:
    """Raise BadMember for what is no plain file that can be read."""
    if "\0" in info.orig_filename:
        raise BadMember("has a name that cannot be shown")
    mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
    if stat.S_IFMT(mode) and not stat.S_ISREG(mode):
        raise BadMember("is a link" if stat.S_ISLNK(mode) else "is no regular file")
    if info.flag_bits & _ENCRYPTED:
        raise BadMember("is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadMember("is compressed in a way that is not read here")


def _name(info: zipfile.ZipInfo) -> str:
    """Return the member's name: macOS writes UTF-8 without saying so, and zipfile takes what does not say so for cp437."""
    try:
        return info.orig_filename if info.flag_bits & _UTF8 else info.orig_filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.orig_filename


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    try:
        with archive.open(info) as file:
            return read_at_most(file, most)  # type: ignore[arg-type]  # IO[bytes] is what is needed
    except _FAULTS:
        raise BadMember("is damaged") from None


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
