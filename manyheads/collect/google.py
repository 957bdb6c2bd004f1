"""Google Classroom: a copy for each student has the student's name before its own, "Ada Lovelace - 04_reshape_dance.ipynb".

All copies lie in one folder of the teacher's drive. Only where they are of several students does a name say whose a file is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..course import Course
from .found import Found, own_name
from .platform import Contents, Download, HandedIn, Person

_NAME = re.compile(r"(?P<who>[^/]+?) - (?P<file>.+\.(?:py|ipynb))", re.DOTALL | re.IGNORECASE)


class Google:
    """Google Classroom."""

    name = "Google Classroom"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """The files by what stands before an exercise's name."""
        parts = ((file, _NAME.fullmatch(own_name(file.name))) for file in files if download.trusted(file) == file.path)
        known = [name for exercise in course.exercises for name in (exercise.id, exercise.stem)]
        found = [(file, match) for file, match in parts if match and _names_one(match, known)]
        if len({match["who"] for _, match in found}) < 2:
            return Contents()
        return Contents([HandedIn(_person(match["who"]), file, match["file"]) for file, match in found])


def _names_one(match: re.Match[str], known: Sequence[str]) -> bool:
    """Whether an exercise's name stands after the student's, and none before."""
    return any(name in match["file"] for name in known) and not any(name in match["who"] for name in known)


def _person(who: str) -> Person:
    return Person(folder=who, key=f"user {who}", name=who)
