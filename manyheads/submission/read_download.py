"""Read a download, whether a folder, an archive or one file, and the archives within it. Nothing is unpacked to disk."""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ..errors import CourseFault
from . import ENDINGS, Unreadable, is_archive, is_noise, read_bytes, shown
from .archives import DEEPEST, LONGEST, TOO_LARGE, TOO_MANY, BadArchive, BadMember, Member, archive_members, safe_path

MIB = 1024 * 1024
METADATA = "submission_metadata.yml"  # Gradescope's list
_AGAIN = "Next: unpack it by hand, look at it, then course collect that folder"
_ASK = "Next: ask for the file itself"
_NESTED = 2  # archives within archives: a student's in the download's
# What browsers and mail programs put behind an ending that they do not know, and platforms before it: 04_x.py.txt, 04_x.ipynb-1.json.
_WRAPPED = re.compile(
    r"(?P<name>.+\.(?:py|ipynb))(?:[ _-]?\(?\d{1,4}\)?)?(?: ?\(\d{1,4}\))?\.(?:txt|json|download)",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class Limits:
    """How much of a download is read. What an attempt may weigh, course.yaml says: larger ones are laid out, not graded."""

    attempt: int = 16 * MIB  # the largest script, notebook or list of submissions
    archive: int = 256 * MIB  # the largest archive within a download
    inner: int = 128 * MIB  # what one archive within a download may unpack to
    inner_members: int = 5_000  # without what is noise, such as a virtual environment
    inner_listed: int = 40_000  # with it: what one archive within a download may list, by the size of its list
    total: int = 2048 * MIB  # what everything that is kept may weigh
    members: int = 500_000


@dataclass(frozen=True)
class Found:
    """A file of a download. path: its folders and name; an archive on the way is one of them. content: None if unread.

    closed: why it could not be read, though it would have been: what follows its name in a sentence.
    is_folder: whether it is a folder or an archive that could not be opened, and stands for what is in it.
    """

    path: tuple[str, ...]
    content: bytes | None
    modified: float = 0.0  # seconds, as far as the archive says
    closed: str = ""
    is_folder: bool = False

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path[-1]


@dataclass(frozen=True)
class Refused:
    """A sentence on what was not taken, and where it is."""

    path: tuple[str, ...]
    reason: str


class TooMuch(Exception):
    """A limit is passed. The text says which."""


@dataclass
class Budget:
    """What may still be read. Spending more raises TooMuch."""

    bytes_left: int
    members_left: int
    within: Budget | None = field(default=None, repr=False)

    def share(self, size: int, members: int) -> Budget:
        """Return a budget within this one.

        Of that of all downloads it is a quarter of what is left at most: nobody's archives, however many, leave nothing
        for the others'.
        """
        if self.within is None:
            size, members = min(size, self.bytes_left // 4), min(members, self.members_left // 4)
        return Budget(size, members, within=self)

    def spend(self, size: int = 0, members: int = 0) -> None:
        """Count bytes and members, here and in the budget around this one. Raises TooMuch."""
        self.bytes_left -= size
        self.members_left -= members
        if self.bytes_left < 0 or self.members_left < 0:
            raise TooMuch(TOO_LARGE if self.bytes_left < 0 else TOO_MANY)
        if self.within is not None:
            self.within.spend(size, members)


@dataclass
class Reader:
    """Reads downloads within one set of limits, and keeps a sentence for whatever it refuses."""

    limits: Limits = field(default_factory=Limits)
    refused: list[Refused] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._budget = Budget(self.limits.total, self.limits.members)

    def read(self, download: Path) -> list[Found]:
        """Return every file of a download; scripts and notebooks with their content. Raises CourseFault."""
        if not os.path.lexists(download):
            raise CourseFault(f"{download} does not exist. Next: course collect DOWNLOAD --out submitted")
        try:
            if download.is_dir():
                return list(self._folder(download, ()))
            if not is_archive(download.name):
                return list(self._file(download, (download.name,)))
            with download.open("rb") as file:
                return list(self._archive(file, (download.name,), 1, self._budget))
        except TooMuch as error:
            said = f"{download} is not read to its end: {error}. Next: course collect it in parts, a folder at a time"
            raise CourseFault(said) from None
        except OSError as error:
            raise CourseFault(f"{download} cannot be read ({error.strerror}). Next: download it again") from None

    def _folder(self, folder: Path, path: tuple[str, ...]) -> Iterator[Found]:
        if len(path) > DEEPEST:
            return self._refuse(path, "has too many folders within folders. Next: look at it by hand")
        try:
            entries = sorted(((each, each.lstat().st_mode) for each in folder.iterdir()), key=lambda p: p[0].name)
        except OSError as error:  # it cannot be listed, or not be entered
            if not path:
                raise
            yield Found(path, None, closed=f"is not read: {_without_rights(error, folder)}", is_folder=True)
            return
        for each, mode in entries:
            if is_noise(each.name):
                continue
            self._budget.spend(members=1)
            inner = (*path, each.name)
            if stat.S_ISLNK(mode):
                self._refuse(inner, "is a link, and links are not followed. Next: put the file itself there")
            elif stat.S_ISDIR(mode):
                yield from self._folder(each, inner)
            else:
                yield from self._file(each, inner)

    def _file(self, file: Path, path: tuple[str, ...]) -> Iterator[Found]:
        """Yield a file on disk, or what is in it."""
        try:
            path = (*path[:-1], *safe_path(path[-1]))
        except BadMember as reason:
            return self._refuse(path, f"{reason}. Next: rename it")
        if not stat.S_ISREG(file.lstat().st_mode):
            return self._refuse(path, "is no regular file. Next: remove it")
        if not _is_wanted(file.name):
            yield Found(path, None)
            return
        try:
            content = read_bytes(file, self._most(file.name) // 1024)
        except Unreadable as error:
            why = str(error).rstrip(".") if os.access(file, os.R_OK) else _without_rights(PermissionError(), file)
            yield Found(path, None, closed=f"is not read: {why}. Next: look at it by hand")
            return
        yield from self._content(path, content, file.stat().st_mtime, 0, self._budget)

    def _content(
        self, path: tuple[str, ...], content: bytes, modified: float, depth: int, budget: Budget
    ) -> Iterator[Found]:
        """Yield a file that has been read; of an archive, the files in it: all, or none where it passes a limit."""
        if not is_archive(path[-1]):
            budget.spend(len(content))
            yield Found(path, content, modified)
            return
        inner = budget.share(self.limits.inner, self.limits.inner_members)
        before, left = len(self.refused), (budget.bytes_left, budget.members_left)
        try:
            found = list(self._archive(io.BytesIO(content), path, depth + 1, inner))
        except TooMuch as error:
            if min(budget.bytes_left, budget.members_left) < 0:
                raise  # not this archive alone
            del self.refused[before:]
            if budget.within is None:  # nothing of it is kept; one within a student's own counts, for the time it takes
                budget.bytes_left, budget.members_left = left
            found = [Found(path, None, modified, closed=f"is not opened: {error}. {_AGAIN}", is_folder=True)]
        yield from found

    def _archive(self, file: BinaryIO, path: tuple[str, ...], depth: int, budget: Budget) -> Iterator[Found]:
        """Yield the files of an archive. path: its own; the download's own name begins no path of what is in it."""
        is_download = budget is self._budget
        listed = self.limits.members if is_download else self.limits.inner_listed
        unpacked = min(self.limits.total if is_download else self.limits.inner, budget.bytes_left)
        try:
            if depth > _NESTED:
                raise BadArchive(f"it is within {depth - 1} others")
            for member in archive_members(file, path[-1], listed, unpacked):
                yield from self._member(member, () if is_download else path, depth, budget)
        except BadArchive as error:
            yield Found(path, None, closed=f"is not opened: {error}. {_AGAIN}", is_folder=True)

    def _member(self, member: Member, path: tuple[str, ...], depth: int, budget: Budget) -> Iterator[Found]:
        if any(map(is_noise, member.name.replace("\\", "/").split("/"))):
            return
        budget.spend(members=1)
        try:
            if member.refused:
                raise BadMember(member.refused)
            inner = (*path, *safe_path(member.name))
        except BadMember as reason:
            name = member.name  # one of 60,000 characters would drive everything else off the screen
            short = name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-LONGEST // 4 :]}"
            return self._refuse((*path, short), f"{reason}, and is not taken. {_ASK}")
        if not _is_wanted(inner[-1]):
            yield Found(inner, None, member.modified)
            return
        try:
            content = member.read(self._most(inner[-1]))
        except BadMember as reason:
            yield Found(inner, None, member.modified, closed=f"{reason}, and is not taken. {_ASK}")
            return
        yield from self._content(inner, content, member.modified, depth, budget)

    def _most(self, name: str) -> int:
        return self.limits.archive if is_archive(name) else self.limits.attempt

    def _refuse(self, path: tuple[str, ...], reason: str) -> None:
        self.refused.append(Refused(path, reason))


def own_name(name: str) -> str:
    """Return the name of a script or a notebook without what was put behind its ending; any other name as it is."""
    match = _WRAPPED.fullmatch(name)
    return match["name"] if match else name


def _without_rights(error: OSError, path: Path) -> str:
    said = error.strerror or os.strerror(errno.EACCES)
    return f"{said}; chmod -R u+rwX {shlex.quote(shown(str(path)))} changes that"


def _is_wanted(name: str) -> bool:
    """Return whether the content of this file is looked at."""
    return is_archive(name) or own_name(name).lower().endswith(ENDINGS) or name == METADATA
