"""Schoology: "HW1/Lovelace, Ada - s100/Revision 2 - Late/04_reshape_dance.py". Each time that somebody hands in is a revision."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..course import Course
from .found import Found
from .platform import Contents, Download, HandedIn, Person

_REVISION = re.compile(r"Revision (?P<number>\d{1,9})(?: ?- ?(?P<status>.*))?", re.IGNORECASE | re.DOTALL)
_WHO = re.compile(r"(?P<name>.*\S) - (?P<id>\S+)", re.DOTALL)  # a school that gives no ids has the name alone


class Schoology:
    """Schoology."""

    name = "Schoology"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """The files by the folder above their revision's."""
        contents = Contents()
        for file in files:
            for at in range(1, min(len(file.path) - 1, download.parting + 2)):
                if match := _REVISION.fullmatch(file.path[at]):
                    late = (match["status"] or "").strip().casefold() == "late"
                    person, order = _person(file.path[at - 1]), float(match["number"])
                    contents.handed_in.append(HandedIn(person, file, file.name, order, late))
                    break
        return contents


def _person(folder: str) -> Person:
    match = _WHO.fullmatch(folder)
    folder, name = (match["id"], match["name"]) if match else (folder, folder)
    return Person(folder=folder, key=f"user {folder}", name=name, sis_id=folder if match else "")
