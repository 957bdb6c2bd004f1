"""What all platforms have in common: a download is read as files of persons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..course import Course
from .found import Found, Refused


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


@dataclass(frozen=True)
class HandedIn:
    """A file that a person handed in.

    name: as the student named it, without what the platform put before it.
    order: the platform's own order of attempts, the newest last; equal where it has none.
    """

    person: Person
    file: Found
    name: str
    order: float = 0.0
    late: bool = False


@dataclass(frozen=True)
class Contents:
    """What a platform makes of a download. others: what is nobody's file, with the reason."""

    handed_in: list[HandedIn]
    others: list[Refused]


class Platform(Protocol):
    """Knows the names that one platform gives to what it lets an instructor download."""

    name: str

    def read(self, files: Sequence[Found], download: str, course: Course) -> Contents | None:
        """The files of each person; None where the download is none of this platform's. download: its name."""


def unwrapped(name: str) -> str:
    """A folder's name; of an archive that stands for a folder, without its suffix."""
    for suffix in (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".zip", ".tar"):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name
