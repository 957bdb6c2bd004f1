"""What all platforms have in common: a download is read as files of persons.

A student decides on the names within what they handed in, and could name a folder in it as a platform names another student's. So a
platform looks for its names only where a download's files part ways, or above: there the platform itself, or the instructor, named them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os.path import commonprefix

from ..course import Course
from .found_files import Found, Refused

ALONE = " alone in "  # in a person's key, before the archive that holds one folder only


@dataclass(frozen=True)
class Person:
    """A student, or a group that hands in as one, as a platform names them.

    folder: the name of the student's folder where no roster knows better.
    key: what is this person's alone on the platform, so that two of the same name stay two.
    """

    folder: str
    key: str
    name: str = ""
    canvas_id: str = ""
    sis_id: str = ""
    email: str = ""
    github: str = ""
    login: str = ""


def person_called(name: str) -> Person:
    """Return the person of a folder or an archive that people named: it may be any id of the roster, or a name."""
    return Person(folder=name, key=f"folder {name}", name=name, sis_id=name, email=name, login=name)


def user(folder: str, name: str = "", *, login: str = "", sis_id: str = "", email: str = "") -> Person:
    """Return the person whose folder's name nobody else has on the platform. name: where it is another."""
    return Person(folder, f"user {folder}", name or folder, login=login, sis_id=sis_id, email=email)


@dataclass(frozen=True)
class HandedIn:
    """A file that a person handed in.

    name: as the student named it, without what the platform put before it.
    order: the platform's own order of attempts, the newest last; equal where it has none.
    named: what the platform calls it, by which it knows whose feedback is: Canvas' file, Moodle's folder.
    archive: the archive whose own name says who the person is.
    time: when it was handed in, in ISO 8601, where the platform says; late: whether it says late.
    """

    person: Person
    file: Found
    name: str
    order: float = 0.0
    late: bool = False
    time: str = ""
    named: str = ""
    archive: str = ""


@dataclass(frozen=True)
class Download:
    """A download that has been read.

    name: its own. is_of_one: whether it is one of several archives, each of which is one student's.
    is_known: whether somebody on the roster has this id or name.
    """

    name: str
    files: tuple[Found, ...]
    is_of_one: bool = False
    is_known: Callable[[str], bool] = field(default=lambda name: False, repr=False, compare=False)

    @cached_property
    def parting(self) -> int:
        """How many folders all files have in common: the first place where their paths differ."""
        if len(self.files) < 2:
            return max((len(file.path) - 1 for file in self.files), default=0)
        shortest = min(len(file.path) for file in self.files)
        differ = (i for i in range(shortest) if len({file.path[i] for file in self.files}) > 1)
        return next(differ, shortest - 1)

    def trusted(self, file: Found) -> tuple[str, ...]:
        """Return the part of a file's path whose names no student chose, but for the file's own."""
        return file.path[: self.parting + 1]

    def match(
        self, pattern: re.Pattern[str], file: Found, plain: Callable[[str], str] = lambda name: name
    ) -> re.Match[str] | None:
        """Return the match of the first trusted part of a file's path that has this form. plain: what is held against it."""
        return next(filter(None, map(pattern.fullmatch, map(plain, self.trusted(file)))), None)

    def match_below(self, pattern: re.Pattern[str], file: Found, first: int = 1) -> tuple[int, re.Match[str]] | None:
        """Return the place and the match of the first folder of this form that is a trusted one, or is in one."""
        for at in range(first, min(len(file.path) - 1, self.parting + 2)):
            if match := pattern.fullmatch(file.path[at]):
                return at, match
        return None


@dataclass
class Contents:
    """What a platform makes of a download.

    others: what is not taken, with the reason. nobodys: what was not handed in, such as the rest of a class repository.
    feedback: what went back to students; a student's older file may be in it.
    """

    handed_in: list[HandedIn] = field(default_factory=list)
    others: list[Refused] = field(default_factory=list)
    nobodys: list[Found] = field(default_factory=list)
    feedback: list[Found] = field(default_factory=list)

    @property
    def closed_of_nobody(self) -> list[Refused]:
        """What cannot be read, and nobody handed in."""
        handed_in = {item.file.path for item in self.handed_in}
        return [Refused(f.path, f.closed) for f in self.nobodys if f.closed and f.path not in handed_in]

    @property
    def paths(self) -> set[tuple[str, ...]]:
        """Of all files that this says something of."""
        files = (*(item.file for item in self.handed_in), *self.nobodys, *self.feedback)
        return {file.path for file in files} | {other.path for other in self.others}

    def add_beside(self, files: Iterable[tuple[Person, Found]], reason: str) -> None:
        """Add files that were not handed in. They are refused for this reason, but for those of who handed in others."""
        have_handed_in = {item.person.key for item in self.handed_in}
        for person, file in files:
            if person.key in have_handed_in:
                self.nobodys.append(file)
            else:
                self.others.append(Refused(file.path, reason))


Read = Callable[[Sequence[Found], Download, Course], Contents]


@dataclass(frozen=True)
class Platform:
    """Knows the names that one platform gives to what it lets an instructor download.

    read: returns what it knows of these files of the download; what it leaves out is left to the next platform.
    """

    name: str
    read: Read


def platform(name: str) -> Callable[[Read], Platform]:
    """Make a platform of this name of the function that reads its downloads."""
    return lambda read: Platform(name, read)


def own_part(file: Found, match: re.Match[str]) -> str:
    """Return a file's name without what the platform put before it; whole where a folder or an archive matches, and this is in it."""
    return match["file"] if match["file"] and match.string == file.name else file.name


def in_common(names: Iterable[str], sign: str) -> str:
    """Return what all these names begin with, up to its last sign; "" where there are not two names."""
    different = list(set(names))
    shared = commonprefix(different) if len(different) > 1 else ""  # noqa: RUF071, letter by letter is what is meant
    return shared[: shared.rfind(sign) + 1]


def unwrapped(name: str) -> str:
    """Return a folder's name; of an archive that stands for a folder, without its suffix."""
    for suffix in (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".zip", ".tar", ".7z", ".rar"):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name
