"""Read folders, zip and tar archives, file by file, within what one person may take. Nothing is unpacked to disk.

Students make archives: nothing that one claims is believed, and nothing within one says whose it is.
"""

from __future__ import annotations

import bz2
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from ..errors import CourseFault
from . import ENDINGS, Unreadable, is_archive, read_bytes, shown
from .find import is_noise

MIB = 1024 * 1024
PERSONS = 25  # whose archives a download may be as large as
METADATA = "submission_metadata.yml"  # of Gradescope: whose each folder is
LONGEST, DEEPEST = 255, 40  # characters of a name; folders within folders
_TOO_LARGE, _TOO_MANY = "it unpacks to more than is read here", "it has more files than are read here"
_ASK = "Next: ask for the file itself"
_NOISE = f"holds nothing but what editors and systems leave. {_ASK}"
_FAULTS = (
    *(zipfile.BadZipFile, tarfile.TarError, struct.error, zlib.error, lzma.LZMAError, EOFError),
    *(OSError, ValueError, OverflowError, RuntimeError),  # among these NotImplementedError, RecursionError
)
# What browsers and mail programs put behind an ending that they do not know, and platforms before it: 04_x.py.txt, 04_x.ipynb-1.json.
_WRAPPED = re.compile(
    r"(.+\.(?:py|ipynb))(?:[ _-]?\(?\d{1,4}\)?)?(?: ?\(\d{1,4}\))?\.(?:txt|json|download)", re.DOTALL | re.IGNORECASE
)


class Closed(Exception):
    """What is not read, or not taken. The text says why, and what comes next; it follows the path."""


def _unopened(why: str) -> Closed:
    return Closed(f"is not opened: {why}. Next: unpack it by hand, look at it, then course collect that folder")


@dataclass
class Limits:
    """How much may still be read: of one file, and in one person's archives, or a download. until: by the monotonic clock."""

    attempt: int = 16 * MIB
    size: int = 128 * MIB
    members: int = 5_000  # without what is noise, such as a virtual environment; a zip's list may have 8 times as many
    seconds: float = 30
    code: int = 1_500_000  # characters, parsed in 5 s at most; 640 files in 60 KB of one student's zip took 6 minutes
    until: float = float("inf")

    def of(self, persons: int = 1) -> Limits:
        """Return what archives of so many may take, from now on."""
        until = time.monotonic() + self.seconds * persons
        return replace(self, size=self.size * persons, members=self.members * persons, until=until)

    @property
    def spent(self) -> str:
        """Why nothing more is read; "" where something may be."""
        why = _TOO_LARGE if self.size < 0 else _TOO_MANY if self.members < 0 else ""
        return why or "it takes longer than is read here" * (time.monotonic() > self.until)

    def take(self, size: int = 0, members: int = 0) -> None:
        """Count bytes and members. Raises Closed where there are too many."""
        self.size, self.members = self.size - size, self.members - members
        if self.spent:
            raise _unopened(self.spent)


@dataclass(frozen=True)
class Member:
    """A file in a download. start: opens it, where it is one that is looked at.

    closed, refused: why it cannot be read, or is nobody's hand-in, and what comes next.
    """

    path: tuple[str, ...]
    modified: float = 0.0  # seconds, as far as the archive says
    start: Callable[[], IO[bytes]] | None = field(default=None, compare=False)
    closed: str = ""
    refused: str = ""

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path[-1]


@dataclass
class Reader:
    """Reads downloads. files: to be closed at the end."""

    limits: Limits
    files: ExitStack = field(default_factory=ExitStack)

    def listed(self, download: Path) -> list[Member]:
        """Return every file of a download. Raises CourseFault."""
        name = download.name
        try:
            if download.is_dir():
                return list(self._folder(download))
            if not is_archive(name):
                return list(self._file(download, (name,)))
            file = self.files.enter_context(download.open("rb"))
            return self._members(file, (), self.limits.of(PERSONS))
        except Closed as reason:
            return [Member((name,), closed=str(reason))]
        except FileNotFoundError:
            raise CourseFault(f"{download} does not exist. Next: course collect DOWNLOAD --out submitted") from None
        except OSError as error:
            raise CourseFault(f"{download} cannot be read ({error.strerror}). Next: download it again") from None

    def opened(self, member: Member, budget: Limits) -> list[tuple[Member, bytes]]:
        """Return a file with its content; of an archive all files, or none and why."""
        found, left = list[tuple[Member, bytes]](), [member]
        while left:
            each = left.pop()
            try:
                content = content_of(each, self._most(each.name))
                if each is not member:
                    budget.take(len(content))
                if is_archive(each.name) and each.start:
                    left += self._members(io.BytesIO(content), each.path, budget)
                else:
                    found.append((each, content))
            except Closed as reason:
                if budget.spent:
                    return [(replace(member, closed=str(reason)), b"")]
                found.append((replace(each, closed=str(reason)), b""))
        return found

    def _most(self, name: str) -> int:
        return self.limits.size if is_archive(name) else self.limits.attempt

    def _folder(self, folder: Path) -> Iterator[Member]:
        left: list[tuple[str, ...]] = [()]
        while left:
            place = folder.joinpath(*(path := left.pop()))
            try:
                every = sorted(place.iterdir())
                entries = [(each, each.lstat()) for each in every if not is_noise(each.name)]
            except OSError:  # it cannot be listed, or not be entered
                if not path:
                    raise
                yield Member((*path, ""), closed=_without_rights(place))
                continue
            if every and len(path) == 1 and not entries:
                yield Member(path, refused=_NOISE)
            left += [(*path, each.name) for each, status in entries if stat.S_ISDIR(status.st_mode)]
            for each, status in entries:
                if not stat.S_ISDIR(status.st_mode):
                    yield from self._file(each, (*path, each.name))

    def _file(self, file: Path, path: tuple[str, ...]) -> Iterator[Member]:
        status, (parts, why) = file.lstat(), _parts("/".join(path))
        if why := why or _kind(status.st_mode):
            yield Member(path, refused=f"{why}. Next: put the file itself there, under another name")
        else:
            yield Member(parts, status.st_mtime, partial(self._open, file) if is_wanted(file.name) else None)

    def _open(self, file: Path) -> IO[bytes]:
        try:
            return io.BytesIO(read_bytes(file, self._most(file.name) // 1024))
        except Unreadable as error:
            said = f"is not read: {str(error).rstrip('.')}. {_ASK}"
            raise Closed(said if os.access(file, os.R_OK) else _without_rights(file)) from None

    def _members(self, file: IO[bytes], above: tuple[str, ...], budget: Limits) -> list[Member]:
        """Return the files of an archive, of equal names the last. above: what stands before their paths. Raises Closed."""
        found, refused, around = dict[tuple[str, ...], Member](), list[Member](), set[tuple[str, ...]]()
        for each in _zip(file, 8 * budget.members) if zipfile.is_zipfile(file) else _tar(file, self._most, budget.size):
            own = each.name
            names = own.replace("\\", "/").split("/")
            if (noise := next((place for place, name in enumerate(names) if is_noise(name)), None)) is not None:
                top = (*above, *names[: noise > 0])
                budget.take(members=top not in around)
                around.add(top)
                continue
            budget.take(members=1)
            parts, why = _parts(own)
            inner, ask = (*above, *parts), f", and is not taken. {_ASK}"
            if why:
                short = own if len(own) <= LONGEST else f"{own[: LONGEST // 2]}…{own[-LONGEST // 4 :]}"
                refused.append(Member((*above, short), refused=why + ask))
                continue
            if inner in found:
                again = f"stands in the archive once more, and the last one counts. {_ASK}"
                refused.append(Member(inner, refused=again))
            start = each.start if is_wanted(inner[-1]) and not each.closed else None
            found[inner] = replace(each, path=inner, start=start, closed=each.closed and each.closed + ask)
        others = around - {above, *(path[: len(above) + 1] for path in found)}
        if not found:
            why = f"a file in it {refused[0].refused.partition(',')[0]}" if refused else "there are no files in it"
            raise _unopened(why)
        return [*found.values(), *refused, *(Member(path, refused=_NOISE) for path in sorted(others))]


def own_name(name: str) -> str:
    """Return the name of a script or a notebook without what was put behind its ending; any other name as it is."""
    match = _WRAPPED.fullmatch(name)
    return match[1] if match else name


def is_wanted(name: str) -> bool:
    """Return whether the content of this file is looked at."""
    return is_archive(name) or own_name(name).lower().endswith(ENDINGS) or name == METADATA


def _parts(name: str) -> tuple[tuple[str, ...], str]:
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


def _without_rights(path: Path) -> str:
    changes = f"chmod -R u+rwX {shlex.quote(shown(str(path)))} changes that"
    return f"is not read: Permission denied; {changes}. Next: the same command again"


_ENTRY = 400  # bytes of a member in a zip's list, with a long name
_LIST_SIZE = 5  # where that list's own stands in what zipfile makes of a zip's end
_UTF8, _ENCRYPTED = 0x800, 0x1


def _zip(file: IO[bytes], most: int) -> Iterator[Member]:
    try:
        # zipfile reads the list of members at once, as long as its end says, and makes an object for each.
        end = zipfile._EndRecData(file)  # type: ignore[attr-defined]
        if end and end[_LIST_SIZE] > max(most * _ENTRY, MIB):
            raise _unopened(_TOO_MANY)
        archive = zipfile.ZipFile(file)
    except _FAULTS:
        raise _unopened("it is damaged, or no zip at all") from None
    for info in archive.infolist():
        name, modified, mode = info.orig_filename, 0.0, info.external_attr >> 16
        if info.filename.endswith("/"):  # is_dir() fails on an empty name
            continue
        with suppress(UnicodeError):  # macOS writes UTF-8 without saying so, and zipfile takes that for cp437
            name = name if info.flag_bits & _UTF8 else name.encode("cp437").decode("utf-8")
        with suppress(ValueError, OverflowError):
            modified = datetime(*info.date_time, tzinfo=UTC).timestamp()
        is_known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        closed = _kind(mode) * bool(stat.S_IFMT(mode)) or "is encrypted" * (info.flag_bits & _ENCRYPTED)
        closed = closed or "is compressed in a way that is not read here" * (not is_known)
        yield Member((name,), modified, partial(archive.open, info), closed)


def _kind(mode: int) -> str:
    kinds = {stat.S_IFREG: "", stat.S_IFLNK: "is a link"}
    return kinds.get(stat.S_IFMT(mode), "is no regular file")


_LATEST = 2.0**33  # seconds since 1970: in the year 2242
_HEADER = 64 * 1024  # bytes of a header about headers: 200,000 names in 424 KB, copied to each member, made 15 GB
# tarfile would unpack a stream, too, but a block of it at once, and bz2 makes 700 MB of 512 bytes.
_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}


class _ShortHeader(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _ShortHeader:
        """Raise Closed for a header about headers that is longer than any that is needed: the library keeps it in memory."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in b"LKxgX" and header.size > _HEADER:
            raise _unopened("its headers are longer than any that are needed")
        return header


def _tar(file: IO[bytes], most: Callable[[str], int], left: int) -> Iterator[Member]:
    """Read it as a stream, from its beginning to its end: a header may claim any size, and lead anywhere."""
    file.seek(0)
    start = file.read(6)
    file.seek(0)
    opened = next((opener(file) for magic, opener in _OPENERS.items() if start.startswith(magic)), file)
    try:
        with tarfile.open(fileobj=opened, mode="r|", tarinfo=_ShortHeader) as archive:
            while info := archive.next():
                archive.members.clear()  # type: ignore[attr-defined]
                archive.pax_headers.clear()  # type: ignore[attr-defined]
                if (left := left - info.size) < 0:
                    raise _unopened(_TOO_LARGE)
                is_file, content = info.isreg() and not info.issparse(), b""
                if is_file and is_wanted(info.name.rpartition("/")[2]):
                    content = cast(IO[bytes], archive.extractfile(info)).read(most(info.name) + 1)
                closed = "is a link" if info.issym() or info.islnk() else "is no regular file"
                modified = float(info.mtime) if 0 <= info.mtime < _LATEST else 0.0  # it may be no number
                if not info.isdir():
                    yield Member((info.name,), modified, partial(io.BytesIO, content), closed * (not is_file))
    except _FAULTS:
        raise _unopened("it is damaged, or neither zip nor tar") from None
