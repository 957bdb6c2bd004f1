"""Read folders, zip and tar archives, file by file, within what one person may take. Nothing is unpacked to disk.

Students make archives: nothing that one claims is believed, and nothing within one says whose it is.
"""

from __future__ import annotations

import bz2
import calendar
import errno
import gzip
import io
import lzma
import os
import re
import shlex
import stat
import struct
import tarfile
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from ..errors import CourseFault
from . import ENDINGS, Unreadable, is_archive, is_noise, read_bytes, shown

MIB = 1024 * 1024
METADATA = "submission_metadata.yml"  # of Gradescope: whose each folder is
LONGEST, DEEPEST = 255, 40  # characters of a name; folders within folders
_NESTED = 2  # archives within archives: a student's in the download's
_TOO_LARGE, _TOO_MANY = "it unpacks to more than is read here", "it has more files than are read here"
_AGAIN = "Next: unpack it by hand, look at it, then course collect that folder"
_ASK = "Next: ask for the file itself"
_FAULTS = (
    *(zipfile.BadZipFile, tarfile.TarError, struct.error, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, ValueError, OverflowError, RuntimeError),  # among these NotImplementedError, RecursionError
)
# What browsers and mail programs put behind an ending that they do not know, and platforms before it: 04_x.py.txt, 04_x.ipynb-1.json.
_WRAPPED = re.compile(
    r"(?P<name>.+\.(?:py|ipynb))(?:[ _-]?\(?\d{1,4}\)?)?(?: ?\(\d{1,4}\))?\.(?:txt|json|download)",
    re.DOTALL | re.IGNORECASE,
)


class Closed(Exception):
    """What cannot be read, or is not taken. The text says why, and what comes next; it follows the path."""


class NotOpened(Exception):
    """An archive that is not opened. The text says why."""


@dataclass(frozen=True)
class Limits:
    """How much is read: of one file; in the archives of one person; of all downloads together."""

    attempt: int = 16 * MIB
    archive: int = 256 * MIB
    person: int = 128 * MIB
    members: int = 5_000  # without what is noise, such as a virtual environment
    listed: int = 40_000  # with it
    seconds: float = 30
    total: int = 2048 * MIB
    total_members: int = 500_000


@dataclass(frozen=True)
class Member:
    """A file in a download. start: opens it, where it is one that is looked at. closed: why it cannot be read, and what comes next."""

    path: tuple[str, ...]
    modified: float = 0.0  # seconds, as far as the archive says
    start: Callable[[], IO[bytes] | None] | None = field(default=None, compare=False)
    closed: str = ""

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path[-1]


@dataclass
class Allowance:
    """What may still be read for one person, or of all downloads. until: by the monotonic clock."""

    size: int
    members: int
    until: float = float("inf")

    def take(self, size: int = 0, members: int = 0) -> None:
        """Count bytes and members. Raises NotOpened."""
        self.size -= size
        self.members -= members
        if self.size < 0 or self.members < 0:
            raise NotOpened(_TOO_LARGE if self.size < 0 else _TOO_MANY)
        if time.monotonic() > self.until:
            raise NotOpened("it takes longer than one student's files may take")


class Reader:
    """Reads downloads. files: to be closed at the end. refused: what is nobody's, by its path, with why and what comes next."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.files = limits, ExitStack()
        self.refused: list[tuple[tuple[str, ...], str]] = []
        self._all = Allowance(limits.total, limits.total_members)

    def listed(self, download: Path) -> list[Member]:
        """Return every file of a download. Raises CourseFault."""
        whole = replace(self.limits, listed=self.limits.total_members, person=self.limits.total)
        try:
            if download.is_dir():
                return list(self._folder(download, ()))
            if not is_archive(download.name):
                return list(self._file(download, (download.name,)))
            return list(
                self._members(self.files.enter_context(download.open("rb")), (download.name,), 0, whole, self._all)
            )
        except NotOpened as error:
            if min(self._all.size, self._all.members) < 0:
                raise self._too_much(error) from None
            return [Member((download.name,), closed=f"is not opened: {error}. {_AGAIN}")]
        except FileNotFoundError:
            raise CourseFault(f"{download} does not exist. Next: course collect DOWNLOAD --out submitted") from None
        except OSError as error:
            raise CourseFault(f"{download} cannot be read ({error.strerror}). Next: download it again") from None

    def allowance(self) -> Allowance:
        """Return what one person's archives may take, from now on."""
        return Allowance(self.limits.person, self.limits.members, time.monotonic() + self.limits.seconds)

    def opened(self, member: Member, allowance: Allowance, depth: int = 1) -> Iterator[tuple[Member, bytes]]:
        """Yield a file with its content; of an archive all files, or none and why. Raises CourseFault where all is too much."""
        refused, left = len(self.refused), self._all.size
        try:
            if not is_archive(member.name):
                content = content_of(member, self.limits.attempt) if not member.closed else b""
                self._take_of_all(len(content))
                yield member, content
            elif depth > _NESTED:
                raise NotOpened(f"it is within {depth - 1} others")
            elif member.closed:
                yield member, b""
            else:
                yield from self._within(member, allowance, depth)
        except (Closed, NotOpened) as error:
            del self.refused[refused:]
            self._all.size = left  # nothing of it is kept
            said = f"is not opened: {error}. {_AGAIN}" if isinstance(error, NotOpened) else f"{error}. {_ASK}"
            yield Member(member.path, member.modified, closed=said), b""

    def _within(self, member: Member, allowance: Allowance, depth: int) -> list[tuple[Member, bytes]]:
        """Return an archive's files with their content. Raises Closed or NotOpened."""
        allowance.take()
        file, found = io.BytesIO(content_of(member, self.limits.archive)), []
        for inner in self._members(file, member.path, len(member.path), self.limits, allowance):
            for each, content in self.opened(inner, allowance, depth + 1):
                allowance.take(len(content))
                found.append((each, content))
        return found

    def _take_of_all(self, size: int) -> None:
        try:
            self._all.take(size)
        except NotOpened as error:
            raise self._too_much(error) from None

    def _too_much(self, error: NotOpened) -> CourseFault:
        next_ = "Next: course collect them one by one, or a folder at a time"
        return CourseFault(f"the downloads are not read to their end: {error}. {next_}")

    def _folder(self, folder: Path, path: tuple[str, ...]) -> Iterator[Member]:
        if len(path) > DEEPEST:
            return self._refuse(path, "has too many folders within folders. Next: look at it by hand")
        try:
            entries = sorted(((each, each.lstat().st_mode) for each in folder.iterdir()), key=lambda pair: pair[0].name)
        except OSError as error:  # it cannot be listed, or not be entered
            if not path:
                raise
            said = f"is not read: {_without_rights(error, folder)}. Next: look at it by hand"
            yield Member((*path, ""), closed=said)  # what is in it
            return
        for each, mode in entries:
            if is_noise(each.name):
                continue
            self._all.take(members=1)
            if stat.S_ISDIR(mode):
                yield from self._folder(each, (*path, each.name))
            else:
                yield from self._file(each, (*path, each.name))

    def _file(self, file: Path, path: tuple[str, ...]) -> Iterator[Member]:
        status = file.lstat()
        try:
            path = safe_path("/".join(path))
            if stat.S_ISLNK(status.st_mode):
                raise Closed("is a link, and links are not followed")
            if not stat.S_ISREG(status.st_mode):
                raise Closed("is no regular file")
        except Closed as reason:
            return self._refuse(path, f"{reason}. Next: put the file itself there, under another name")
        yield Member(path, status.st_mtime, partial(self._open, file) if is_wanted(file.name) else None)

    def _open(self, file: Path) -> IO[bytes]:
        most = self.limits.archive if is_archive(file.name) else self.limits.attempt
        try:
            return io.BytesIO(read_bytes(file, most // 1024))
        except Unreadable as error:
            why = str(error).rstrip(".") if os.access(file, os.R_OK) else _without_rights(PermissionError(), file)
            raise Closed(f"is not read: {why}") from None

    def _members(
        self, file: BinaryIO, path: tuple[str, ...], kept: int, limits: Limits, allowance: Allowance
    ) -> Iterable[Member]:
        """Return the files of an archive, of equal names the last. kept: how much of its path stands before theirs. Raises NotOpened."""
        if path[-1].lower().endswith((".rar", ".7z")):
            raise NotOpened("it is of a kind that is not opened here")
        found: dict[tuple[str, ...], Member] = {}
        listed = _zip(file, limits.listed) if zipfile.is_zipfile(file) else _tar(file, limits)
        for own, modified, start, closed in listed:
            if any(map(is_noise, own.replace("\\", "/").split("/"))):
                continue
            allowance.take(members=1)
            try:
                inner = (*path[:kept], *safe_path(own))
            except Closed as reason:
                short = own if len(own) <= LONGEST else f"{own[: LONGEST // 2]}…{own[-LONGEST // 4 :]}"
                self._refuse((*path[:kept], short), f"{reason}, and is not taken. {_ASK}")
                continue
            if inner in found:
                self._refuse(inner, f"stands in the archive once more, and the last one counts. {_ASK}")
            opens = start if is_wanted(inner[-1]) else None
            found[inner] = Member(inner, modified, opens, closed and f"{closed}, and is not taken. {_ASK}")
        if not found:
            raise NotOpened("there are no files in it")
        return found.values()

    def _refuse(self, path: tuple[str, ...], reason: str) -> None:
        self.refused.append((path, reason))


def own_name(name: str) -> str:
    """Return the name of a script or a notebook without what was put behind its ending; any other name as it is."""
    match = _WRAPPED.fullmatch(name)
    return match["name"] if match else name


def is_wanted(name: str) -> bool:
    """Return whether the content of this file is looked at."""
    return is_archive(name) or own_name(name).lower().endswith(ENDINGS) or name == METADATA


def safe_path(name: str) -> tuple[str, ...]:
    """Return the parts of a path. Raises Closed where it leads out of the archive, or could not be shown."""
    text = unicodedata.normalize("NFC", name.replace("\\", "/"))
    if text.startswith("/") or (text[1:2] == ":" and text[0].isalpha()):
        raise Closed("has an absolute path")
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if ".." in parts:
        raise Closed("has a path that leads out of the archive")
    if not parts or len(parts) > DEEPEST or any(len(part) > LONGEST for part in parts):
        raise Closed("has a path that is too long or empty")
    if not all(part.isprintable() for part in parts):
        raise Closed("has a name that cannot be shown")
    return parts


def content_of(member: Member, most: int) -> bytes:
    """Return a file's whole content, read piece by piece. Raises Closed if there is more than that."""
    pieces, size = [], 0
    try:
        with (member.start and member.start()) or io.BytesIO() as file:
            while piece := file.read(min(MIB, most + 1 - size)):
                pieces.append(piece)
                if (size := size + len(piece)) > most:
                    raise Closed(f"is larger than {most // 1024:,} KiB, and is not taken")
    except _FAULTS:
        raise Closed("is damaged, and is not taken") from None
    return b"".join(pieces)


def _without_rights(error: OSError, path: Path) -> str:
    return f"{error.strerror or os.strerror(errno.EACCES)}; chmod -R u+rwX {shlex.quote(shown(str(path)))} changes that"


_Listed = Iterator[
    tuple[str, float, Callable[[], IO[bytes] | None], str]
]  # name, time, what opens it, why it is closed
_UTF8, _ENCRYPTED = 0x800, 0x1
_UNIX = 3  # the system whose file modes the upper half of external_attr holds
_ENTRY = 400  # bytes of a member in a zip's list, with a long name


class _Bounded:
    """A file that gives at most so many bytes at once, or in all; else it raises NotOpened."""

    def __init__(self, file: Any, at_once: int = 0, in_all: int = 0) -> None:
        self._file, self._at_once, self._left = file, at_once, in_all

    def read(self, size: int = -1) -> bytes:
        if (
            self._at_once and size > self._at_once
        ):  # zipfile reads its list at once, and makes an object for each member
            raise NotOpened(_TOO_MANY)
        data: bytes = self._file.read(size)
        self._left -= 0 if self._at_once else len(data)
        if self._left < 0:
            raise NotOpened(_TOO_LARGE)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _zip(file: BinaryIO, listed: int) -> _Listed:
    try:
        archive = zipfile.ZipFile(cast(BinaryIO, _Bounded(file, at_once=max(listed * _ENTRY, MIB))))
    except _FAULTS:
        raise NotOpened("it is damaged, or no zip at all") from None
    for info in archive.infolist():
        if not info.filename.endswith("/"):  # is_dir() fails on an empty name
            try:
                modified = float(calendar.timegm((*info.date_time, 0, 0, 0)))
            except (ValueError, OverflowError):
                modified = 0.0
            yield _name(info), modified, partial(archive.open, info), _closed(info)


def _closed(info: zipfile.ZipInfo) -> str:
    """Return why this is no plain file that can be read; "" where it is one."""
    kind = stat.S_IFMT(info.external_attr >> 16) if info.create_system == _UNIX else 0
    if kind and kind != stat.S_IFREG:
        return "is a link" if kind == stat.S_IFLNK else "is no regular file"
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


_LATEST = 2.0**33  # seconds since 1970: in the year 2242
_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
_ABOUT_HEADERS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)


class _ShortHeader(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _ShortHeader:
        """Raise NotOpened for a header about headers that is longer than any that is needed: the library keeps it in memory.

        What one says of every member is copied to each: 200,000 names in 424 KB made 15 GB. `git archive` writes 52 bytes.
        """
        header = super().frombuf(buf, encoding, errors)
        if header.type in _ABOUT_HEADERS and header.size > (1024 if header.type == tarfile.XGLTYPE else 64 * 1024):
            raise NotOpened("its headers are longer than any that are needed")
        return header


def _tar(file: BinaryIO, limits: Limits) -> _Listed:
    """Read it as a stream, from its beginning to its end: a header may claim any size, and lead anywhere."""
    file.seek(0)
    start = file.read(6)
    file.seek(0)
    opened = next((opener(file) for magic, opener in _OPENERS.items() if start.startswith(magic)), file)
    stream = _Bounded(opened, in_all=limits.person)
    try:
        with tarfile.open(fileobj=cast(Any, stream), mode="r|", tarinfo=_ShortHeader) as archive:
            while info := archive.next():
                archive.members.clear()  # type: ignore[attr-defined]
                archive.pax_headers.clear()  # type: ignore[attr-defined]
                if info.isdir():
                    continue
                is_file = info.isreg() and not info.issparse()
                closed = "is a link" if info.issym() or info.islnk() else "" if is_file else "is no regular file"
                content, most = b"", limits.archive if is_archive(info.name) else limits.attempt
                if not closed and is_wanted(info.name.rpartition("/")[2]):
                    content = cast(IO[bytes], archive.extractfile(info)).read(most + 1)
                modified = float(info.mtime) if 0 <= info.mtime < _LATEST else 0.0  # it may be no number
                yield info.name, modified, partial(io.BytesIO, content), closed
    except _FAULTS:
        raise NotOpened("it is damaged, or neither zip nor tar") from None
