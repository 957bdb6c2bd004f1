"""ILIAS: "HW1/Submissions/Lovelace_Ada_alovelace_123/04_reshape_dance (2).py", beside a table, "HW1/HW1.xlsx".

Where a student uploads a name again, ILIAS keeps both, and counts from 2; before a late file's name it puts words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..course import Course
from .found import Found
from .platform import Contents, Download, HandedIn, Person

_WHO = re.compile(r"(?P<name>.+_.+)_(?P<login>[^_]+)_\d{1,18}", re.DOTALL)
_LATE = re.compile(
    r"(?:Late Submission|Verspaetete Abgabe|Versp.tete Abgabe) - (?P<file>.+)", re.DOTALL | re.IGNORECASE
)
_AGAIN = re.compile(r".* \((?P<number>\d{1,4})\)(?:\.[^.]*)?", re.DOTALL)
_TABLES = (".xlsx", ".xls", ".csv")


class Ilias:
    """ILIAS. Teams are folders of their own, and are read as folders."""

    name = "ILIAS"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """The files by their students' folders: where the paths part ways, for names like these are not ILIAS' alone."""
        contents = Contents()
        # The table lies beside the folder of all submissions, and says nothing of where students part ways.
        at = Download(download.name, tuple(f for f in download.files if not f.name.endswith(_TABLES))).parting
        for file in files:
            if len(file.path) > at + 1 and (match := _WHO.fullmatch(file.path[at])):
                contents.handed_in.append(_handed_in(file, file.path[at], match))
        if contents.handed_in:
            contents.nobodys = [file for file in files if len(file.path) <= at + 1 and file.name.endswith(_TABLES)]
        return contents


def _handed_in(file: Found, folder: str, match: re.Match[str]) -> HandedIn:
    late = _LATE.fullmatch(file.name)
    again = _AGAIN.fullmatch(file.name)
    name = match["name"].replace("_", " ")
    person = Person(folder=folder, key=f"user {folder}", name=name, login=match["login"])
    own = late["file"] if late else file.name
    return HandedIn(person, file, own, order=float(again["number"]) if again else 0.0, late=bool(late))
