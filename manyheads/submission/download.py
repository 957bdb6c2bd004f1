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
from .read_download import Found, Refused

ALONE = " alone in "  # in a person's key, before the archive that holds one folder only


@dataclass(frozen=True)
class Person:
    """A student, or a group that hands in as one, as a platform names them.

    folder: the name of the student's folder where no roster knows better; nobody else on the platform has it.
    ids: what the platform knows of them, by the roster's columns.
    alone_in: the archive that holds this folder only: another archive may have one of the same name.
    """

    folder: str
    name: str = ""
    ids: tuple[tuple[str, str], ...] = ()
    alone_in: str = ""

    @property
    def key(self) -> str:
        """What is this person's alone on the platform."""
        return f"{self.folder}{ALONE}{self.alone_in}" if self.alone_in else self.folder


def person_called(name: str, alone_in: str = "") -> Person:
    """Return the person of a folder or an archive that people named: it may be any id of the roster, or a name."""
    return Person(name, name, tuple((column, name) for column in ("sis_id", "email", "login")), alone_in)


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
        return parting(self.files)


def parting(files: Sequence[Found]) -> int:
    """Return how many folders these files have in common."""
    if len(files) < 2:
        return max((len(file.path) - 1 for file in files), default=0)
    shortest = min(len(file.path) for file in files)
    differ = (i for i in range(shortest) if len({file.path[i] for file in files}) > 1)
    return next(differ, shortest - 1)


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


Read = Callable[[Sequence[Found], Download, Course], Contents]


def in_common(names: Iterable[str], sign: str) -> str:
    """Return what all these names begin with, up to its last sign; "" where there are not two names."""
    different = list(set(names))
    shared = commonprefix(different) if len(different) > 1 else ""  # noqa: RUF071, letter by letter is what is meant
    return shared[: shared.rfind(sign) + 1]


ARCHIVE = r"(?i:\.(?:zip|tgz|7z|rar|tar(?:\.gz|\.bz2|\.xz)?))"


def unwrapped(name: str) -> str:
    """Return a folder's name; of an archive that stands for a folder, without its suffix."""
    return re.sub(rf"{ARCHIVE}\Z", "", name)


def matched(expressions: Sequence[str], path: Sequence[str], at: int) -> re.Match[str] | None:
    """Return the match of a path by the first expression whose `who` ends at this part of the path, or above."""
    text = "/".join(path)
    found = (re.compile(expression, re.DOTALL).fullmatch(text) for expression in expressions)
    return next((match for match in found if match and text.count("/", 0, match.end("who")) <= at), None)
