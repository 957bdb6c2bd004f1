"""What all platforms have in common: a download is read as files of persons.

A student decides on the names within what they handed in, and could name a folder in it as a platform names another student's. So a
platform looks for its names only where a download's files part ways, or above: there the platform itself, or the instructor, named them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

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

    def below_trusted(self, file: Found, names: Sequence[str]) -> int:
        """Return where in a file's path the first folder of one of these names stands that is in a trusted one; 0 if none is."""
        places = range(1, min(len(file.path) - 1, self.parting + 2))
        return next((i for i in places if file.path[i].casefold() in names), 0)


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


class Platform(Protocol):
    """Knows the names that one platform gives to what it lets an instructor download."""

    name: str

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """Return what this platform knows of these files of the download; what it leaves out is left to the next one."""


def unwrapped(name: str) -> str:
    """Return a folder's name; of an archive that stands for a folder, without its suffix."""
    for suffix in (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".zip", ".tar", ".7z", ".rar"):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name
