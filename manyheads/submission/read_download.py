"""Read a download, whether a folder, an archive or one file, and the archives within it. Nothing is unpacked to disk."""

from __future__ import annotations

import errno
import io
import os
import shlex
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ..errors import CourseFault
from . import ENDINGS, Unreadable, is_archive, is_noise, read_bytes, shown
from .found_files import (
    BadArchive,
    BadMember,
    Budget,
    Found,
    Limits,
    Member,
    Refused,
    TooMuch,
    own_name,
    safe_path,
    shortened,
)
from .tars import tar_members
from .zips import zip_members

METADATA = "submission_metadata.yml"  # Gradescope's list
_AGAIN = "Next: unpack it by hand, look at it, then course collect that folder"
_ASK = "Next: ask for the file itself"


@dataclass
class Reader:
    """Reads downloads within one set of limits, and keeps a sentence for whatever it refuses."""

    limits: Limits = field(default_factory=Limits)
    refused: list[Refused] = field(default_factory=list)
    _budget: Budget = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._budget = Budget(self.limits.total, self.limits.members)

    def read(self, download: Path) -> list[Found]:
        """Return every file of a download; scripts and notebooks with their content. Raises CourseFault."""
        if not os.path.lexists(download):
            raise CourseFault(f"{download} does not exist. Next: course collect DOWNLOAD --out submitted")
        try:
            if download.is_dir():
                return list(self._folder(download, ()))
            if is_archive(download.name):
                with download.open("rb") as file:
                    files = list(self._archive(file, download.name, (), 1, self._budget, self.limits.members))
                if not files and [refusal.path for refusal in self.refused] == [(download.name,)]:
                    return [Found((download.name,), None, closed=self.refused.pop().reason, is_folder=True)]
                return files
            return list(self._file(download, (download.name,)))
        except TooMuch as error:
            said = f"{download} is not read to its end: {error}. Next: course collect it in parts, a folder at a time"
            raise CourseFault(said) from None
        except OSError as error:
            raise CourseFault(f"{download} cannot be read ({error.strerror}). Next: download it again") from None

    def _folder(self, folder: Path, path: tuple[str, ...]) -> Iterator[Found]:
        if len(path) > self.limits.folders:
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
            path = (*path[:-1], *safe_path(path[-1], self.limits))
        except BadMember as reason:
            return self._refuse(path, f"{reason}. Next: rename it")
        if not stat.S_ISREG(file.lstat().st_mode):
            return self._refuse(path, "is no regular file. Next: remove it")
        most = self.limits.archive if is_archive(file.name) else self.limits.attempt
        if not (is_archive(file.name) or _is_wanted(file.name)):
            yield Found(path, None)
            return
        try:
            content = read_bytes(file, most // 1024)
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
        inner = budget.share(Budget(self.limits.inner, self.limits.inner_members))
        before, left = len(self.refused), (budget.bytes_left, budget.members_left)
        try:
            listed = self.limits.inner_listed
            found = list(self._archive(io.BytesIO(content), path[-1], path, depth + 1, inner, listed))
        except TooMuch as error:
            if min(budget.bytes_left, budget.members_left) < 0:
                raise  # not this archive alone
            del self.refused[before:]
            if budget.within is None:  # nothing of it is kept; one within a student's own counts, for the time it takes
                budget.bytes_left, budget.members_left = left
            found = [Found(path, None, modified, closed=f"is not opened: {error}. {_AGAIN}", is_folder=True)]
        yield from found

    def _archive(
        self, file: BinaryIO, name: str, path: tuple[str, ...], depth: int, budget: Budget, most: int
    ) -> Iterator[Found]:
        """Yield the files of an archive. path: the archive's own within the download; empty if it is the download."""
        try:
            for member in self._members(file, name, path, depth, budget, most):
                yield from self._member(member, path, depth, budget)
        except BadArchive as error:
            reason = f"is not opened: {error}. {_AGAIN}"
            if path:
                yield Found(path, None, closed=reason, is_folder=True)
            else:
                self._refuse((name,), reason)

    def _members(
        self, file: BinaryIO, name: str, path: tuple[str, ...], depth: int, budget: Budget, most: int
    ) -> Iterator[Member | tuple[str, BadMember]]:
        """Read the archive as what it is. Raises BadArchive."""
        if depth > self.limits.depth:
            raise BadArchive(f"it is within {depth - 1} others")
        if name.lower().endswith((".rar", ".7z")):
            raise BadArchive("it is of a kind that is not opened here")
        if zipfile.is_zipfile(file):
            return zip_members(file, self.limits, most)
        return tar_members(file, self.limits, self._room(path, budget))

    def _member(
        self, member: Member | tuple[str, BadMember], path: tuple[str, ...], depth: int, budget: Budget
    ) -> Iterator[Found]:
        parts = member[0].replace("\\", "/").split("/") if isinstance(member, tuple) else member.path
        if any(map(is_noise, parts)):
            return
        budget.spend(members=1)
        if isinstance(member, tuple):
            return self._refuse((*path, shortened(member[0])), f"{member[1]}, and is not taken. {_ASK}")
        inner, name = (*path, *member.path), member.path[-1]
        if not (is_archive(name) or _is_wanted(name)):
            yield Found(inner, None, member.modified)
            return
        try:
            content = member.read(self.limits.archive if is_archive(name) else self.limits.attempt)
        except BadMember as reason:
            yield Found(inner, None, member.modified, closed=f"{reason}, and is not taken. {_ASK}")
            return
        yield from self._content(inner, content, member.modified, depth, budget)

    def _room(self, path: tuple[str, ...], budget: Budget) -> int:
        """Return how many bytes a tar archive may unpack to."""
        return min(self.limits.inner if path else self.limits.total, budget.bytes_left)

    def _refuse(self, path: tuple[str, ...], reason: str) -> None:
        self.refused.append(Refused(path, reason))


def _without_rights(error: OSError, path: Path) -> str:
    said = error.strerror or os.strerror(errno.EACCES)
    return f"{said}; chmod -R u+rwX {shlex.quote(shown(str(path)))} changes that"


def _is_wanted(name: str) -> bool:
    """Return whether the content of this file is looked at."""
    return own_name(name).lower().endswith(ENDINGS) or name == METADATA
