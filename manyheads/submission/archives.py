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
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from ..errors import CourseFault
from . import ENDINGS, Unreadable, is_archive, read_bytes, shown
from .find import is_noise

MIB = 1024 * 1024
METADATA = "submission_metadata.yml"  # of Gradescope: whose each folder is
LONGEST, DEEPEST = 255, 40  # characters of a name; folders within folders
_NESTED = 2  # archives within archives: a student's in the download's
_TOO_LARGE, _TOO_MANY = "it unpacks to more than is read here", "it has more files than are read here"
_ASK = "Next: ask for the file itself"
_FAULTS = (
    *(zipfile.BadZipFile, tarfile.TarError, struct.error, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, ValueError, OverflowError, RuntimeError),  # among these NotImplementedError, RecursionError
)
# What browsers and mail programs put behind an ending that they do not know, and platforms before it: 04_x.py.txt, 04_x.ipynb-1.json.
_WRAPPED = re.compile(
    r"(.+\.(?:py|ipynb))(?:[ _-]?\(?\d{1,4}\)?)?(?: ?\(\d{1,4}\))?\.(?:txt|json|download)", re.DOTALL | re.IGNORECASE
)


class Closed(Exception):
    """What is not read, or not taken. The text says why, and what comes next; it follows the path."""


def _unopened(why: str) -> Closed:
    return Closed(f"is not opened: {why}. Next: unpack it by hand, look at it, then course collect that folder")


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
    start: Callable[[], IO[bytes]] | None = field(default=None, compare=False)
    closed: str = ""

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path[-1]


@dataclass
class Budget:
    """What may still be read for one person, or of all downloads. until: by the monotonic clock."""

    size: int
    members: int
    until: float = float("inf")
    is_of_all: bool = False

    def take(self, size: int = 0, members: int = 0) -> None:
        """Count bytes and members. Raises Closed, or CourseFault where it is of all downloads."""
        self.size -= size
        self.members -= members
        why = _TOO_LARGE if self.size < 0 else _TOO_MANY if self.members < 0 else ""
        if why and self.is_of_all:
            next_ = "Next: course collect them one by one, or a folder at a time"
            raise CourseFault(f"the downloads are not read to their end: {why}. {next_}")
        if why or time.monotonic() > self.until:
            raise _unopened(why or "it takes longer than one student's files may take")


class Reader:
    """Reads downloads. files: to be closed at the end. refused: what is nobody's, by its path, with why and what comes next."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.files = limits, ExitStack()
        self.refused: list[tuple[tuple[str, ...], str]] = []
        self._all = Budget(limits.total, limits.total_members, is_of_all=True)

    def listed(self, download: Path) -> list[Member]:
        """Return every file of a download. Raises CourseFault."""
        name = download.name
        try:
            if download.is_dir():
                return list(self._folder(download))
            if not is_archive(name):
                return list(self._file(download, (name,)))
            return list(self._members(self.files.enter_context(download.open("rb")), name, (), self._all))
        except Closed as reason:
            return [Member((name,), closed=str(reason))]
        except FileNotFoundError:
            raise CourseFault(f"{download} does not exist. Next: course collect DOWNLOAD --out submitted") from None
        except OSError as error:
            raise CourseFault(f"{download} cannot be read ({error.strerror}). Next: download it again") from None

    def budget(self) -> Budget:
        """Return what one person's archives may take, from now on."""
        return Budget(self.limits.person, self.limits.members, time.monotonic() + self.limits.seconds)

    def opened(self, member: Member, budget: Budget, depth: int = 1) -> list[tuple[Member, bytes]]:
        """Return a file with its content; of an archive all files, or none and why. Raises CourseFault where all is too much."""
        refused, left, found = len(self.refused), self._all.size, list[tuple[Member, bytes]]()
        try:
            if member.closed:
                return [(member, b"")]
            if not is_archive(member.name):
                content = content_of(member, self.limits.attempt)
                self._all.take(len(content))
                return [(member, content)]
            if depth > _NESTED:
                raise _unopened(f"it is within {depth - 1} others")
            budget.take()
            file = io.BytesIO(content_of(member, self.limits.archive))
            for inner in self._members(file, member.name, member.path, budget):
                for each, content in self.opened(inner, budget, depth + 1):
                    budget.take(len(content))
                    found.append((each, content))
            return found
        except Closed as reason:
            del self.refused[refused:]
            self._all.size = left  # nothing of it is kept
            return [(replace(member, closed=str(reason)), b"")]

    def _folder(self, folder: Path, path: tuple[str, ...] = ()) -> Iterator[Member]:
        if len(path) > DEEPEST:
            return self.refused.append((path, "has too many folders within folders. Next: look at it by hand"))
        try:
            entries = [(each, each.lstat().st_mode) for each in sorted(folder.iterdir()) if not is_noise(each.name)]
        except OSError as error:  # it cannot be listed, or not be entered
            if not path:
                raise
            yield Member((*path, ""), closed=f"{_without_rights(error, folder)}. Next: look at it by hand")
            return
        for each, mode in entries:
            self._all.take(members=1)
            yield from (self._folder if stat.S_ISDIR(mode) else self._file)(each, (*path, each.name))

    def _file(self, file: Path, path: tuple[str, ...]) -> Iterator[Member]:
        status = file.lstat()
        kind = "is no regular file" * (not stat.S_ISREG(status.st_mode))
        kind = "is a link, and links are not followed" if stat.S_ISLNK(status.st_mode) else kind
        parts, why = _parts("/".join(path))
        if why := why or kind:
            self.refused.append((path, f"{why}. Next: put the file itself there, under another name"))
        else:
            yield Member(parts, status.st_mtime, partial(self._open, file) if is_wanted(file.name) else None)

    def _open(self, file: Path) -> IO[bytes]:
        most = self.limits.archive if is_archive(file.name) else self.limits.attempt
        try:
            return io.BytesIO(read_bytes(file, most // 1024))
        except Unreadable as error:
            why = f"is not read: {error}".rstrip(".")
            why = why if os.access(file, os.R_OK) else _without_rights(PermissionError(), file)
            raise Closed(f"{why}. {_ASK}") from None

    def _members(self, file: IO[bytes], name: str, above: tuple[str, ...], budget: Budget) -> Iterable[Member]:
        """Return the files of an archive, of equal names the last. above: what stands before their paths. Raises Closed."""
        if name.lower().endswith((".rar", ".7z")):
            raise _unopened("it is of a kind that is not opened here")
        found: dict[tuple[str, ...], Member] = {}
        most = self.limits.total_members if budget.is_of_all else self.limits.listed
        for own, modified, start, closed in (
            _zip(file, most) if zipfile.is_zipfile(file) else _tar(file, self.limits, budget.size)
        ):
            if any(map(is_noise, own.replace("\\", "/").split("/"))):
                continue
            budget.take(members=1)
            parts, why = _parts(own)
            inner, ask = (*above, *parts), f", and is not taken. {_ASK}"
            if why:
                short = own if len(own) <= LONGEST else f"{own[: LONGEST // 2]}…{own[-LONGEST // 4 :]}"
                self.refused.append(((*above, short), why + ask))
                continue
            if inner in found:
                self.refused.append((inner, f"stands in the archive once more, and the last one counts. {_ASK}"))
            found[inner] = Member(inner, modified, start if is_wanted(inner[-1]) else None, closed and closed + ask)
        if not found:
            raise _unopened("there are no files in it")
        return found.values()


def own_name(name: str) -> str:
    """Return the name of a script or a notebook without what was put behind its ending; any other name as it is."""
    match = _WRAPPED.fullmatch(name)
    return match[1] if match else name


def is_wanted(name: str) -> bool:
    """Return whether the content of this file is looked at."""
    return is_archive(name) or own_name(name).lower().endswith(ENDINGS) or name == METADATA


def _parts(name: str) -> tuple[tuple[str, ...], str]:
    """Return the parts of a path, and why it is not taken; "" where it is."""
    text = unicodedata.normalize("NFC", name.replace("\\", "/"))
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    rules = {
        "has an absolute path": text.startswith("/") or (text[1:2] == ":" and text[0].isalpha()),
        "has a path that leads out of the archive": ".." in parts,
        "has a path that is too long or empty": not 0 < len(parts) <= DEEPEST or max(map(len, parts)) > LONGEST,
        "has a name that cannot be shown": not all(map(str.isprintable, parts)),
    }
    return parts, next((why for why, holds in rules.items() if holds), "")


def content_of(member: Member, most: int) -> bytes:
    """Return a file's whole content, read piece by piece. Raises Closed if there is more than that."""
    content = bytearray()
    try:
        with member.start() if member.start else io.BytesIO() as file:
            while piece := file.read(min(MIB, most + 1 - len(content))):
                content += piece
                if len(content) > most:
                    raise Closed(f"is larger than {most // 1024:,} KiB, and is not taken. {_ASK}")
    except _FAULTS:
        raise Closed(f"is damaged, and is not taken. {_ASK}") from None
    return bytes(content)


def _without_rights(error: OSError, path: Path) -> str:
    why = error.strerror or os.strerror(errno.EACCES)
    return f"is not read: {why}; chmod -R u+rwX {shlex.quote(shown(str(path)))} changes that"


_Listed = Iterator[tuple[str, float, Callable[[], IO[bytes]], str]]  # name, time, what opens it, why it is closed
_UTF8, _ENCRYPTED = 0x800, 0x1
_UNIX = 3  # the system whose file modes the upper half of external_attr holds
_ENTRY = 400  # bytes of a member in a zip's list, with a long name


class _Bounded:
    """A file that gives at most so many bytes at once, and in all; else it raises Closed."""

    def __init__(self, file: Any, at_once: float = float("inf"), in_all: float = float("inf")) -> None:
        self._file, self._at_once, self._left = file, at_once, in_all

    def read(self, size: int = -1) -> bytes:
        if size > self._at_once:  # zipfile reads its list at once, and makes an object for each member
            raise _unopened(_TOO_MANY)
        data: bytes = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise _unopened(_TOO_LARGE)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _zip(file: IO[bytes], most: int) -> _Listed:
    try:
        archive = zipfile.ZipFile(cast(IO[bytes], _Bounded(file, at_once=max(most * _ENTRY, MIB))))
    except _FAULTS:
        raise _unopened("it is damaged, or no zip at all") from None
    for info in archive.infolist():
        name, modified = info.orig_filename, 0.0
        if info.filename.endswith("/"):  # is_dir() fails on an empty name
            continue
        with suppress(UnicodeError):  # macOS writes UTF-8 without saying so, and zipfile takes that for cp437
            name = name if info.flag_bits & _UTF8 else name.encode("cp437").decode("utf-8")
        with suppress(ValueError, OverflowError):
            modified = float(calendar.timegm((*info.date_time, 0, 0, 0)))
        yield name, modified, partial(archive.open, info), _closed(info)


def _closed(info: zipfile.ZipInfo) -> str:
    """Return why this is no plain file that can be read; "" where it is one."""
    kind = stat.S_IFMT(info.external_attr >> 16) if info.create_system == _UNIX else 0
    if kind and kind != stat.S_IFREG:
        return "is a link" if kind == stat.S_IFLNK else "is no regular file"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    is_known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    return "" if is_known else "is compressed in a way that is not read here"


_LATEST = 2.0**33  # seconds since 1970: in the year 2242
# tarfile would unpack a stream, too, but 10 KB at once, of which bz2 makes 200 MB.
_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
_ABOUT_HEADERS = {tarfile.XGLTYPE: 1024} | dict.fromkeys(
    (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK), 64 * 1024
)


class _ShortHeader(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _ShortHeader:
        """Raise Closed for a header about headers that is longer than any that is needed: the library keeps it in memory.

        What one says of every member is copied to each: 200,000 names in 424 KB made 15 GB. `git archive` writes 52 bytes.
        """
        header = super().frombuf(buf, encoding, errors)
        if header.size > _ABOUT_HEADERS.get(header.type, header.size):
            raise _unopened("its headers are longer than any that are needed")
        return header


def _tar(file: IO[bytes], limits: Limits, most: int) -> _Listed:
    """Read it as a stream, from its beginning to its end: a header may claim any size, and lead anywhere."""
    file.seek(0)
    start = file.read(6)
    file.seek(0)
    opened = next((opener(file) for magic, opener in _OPENERS.items() if start.startswith(magic)), file)
    try:
        stream = cast(Any, _Bounded(opened, in_all=most))
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_ShortHeader) as archive:
            while info := archive.next():
                archive.members.clear()  # type: ignore[attr-defined]
                archive.pax_headers.clear()  # type: ignore[attr-defined]
                if info.isdir():
                    continue
                is_file = info.isreg() and not info.issparse()
                closed = "is a link" if info.issym() or info.islnk() else "" if is_file else "is no regular file"
                content, largest = b"", limits.archive if is_archive(info.name) else limits.attempt
                if not closed and is_wanted(info.name.rpartition("/")[2]):
                    content = cast(IO[bytes], archive.extractfile(info)).read(largest + 1)
                modified = float(info.mtime) if 0 <= info.mtime < _LATEST else 0.0  # it may be no number
                yield info.name, modified, partial(io.BytesIO, content), closed
    except _FAULTS:
        raise _unopened("it is damaged, or neither zip nor tar") from None
