"""Moodle: "Download all submissions" gives a zip of folders, such as "Ada Lovelace_123456_assignsubmission_file_/".

Without "Download submissions in folders" the same stands before each file's own name (moodle, mod/assign/classes/downloader.php).
The number is the participant's in this one assignment; a group has its name and number, blind marking "Participant".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..course import Course
from .found import Found, Refused
from .platform import Contents, Download, HandedIn, Person

_PART = re.compile(
    r"(?P<name>[^_]+)(?:_(?P<number>\d{1,18}))?_assign(?P<kind>submission|feedback)_(?P<plugin>[a-z]+)(?:_(?P<file>.*))?",
    re.DOTALL,
)


class Moodle:
    """Moodle."""

    name = "Moodle"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """The files by their folders' names, or their own."""
        contents = Contents()
        for file in files:
            match = next(filter(None, map(_PART.fullmatch, download.trusted(file))), None)
            if match is not None and match["kind"] == "feedback":
                contents.feedback.append(file)
            elif match is not None and match["plugin"] == "onlinetext":
                said = "is text typed into Moodle, and no file. Next: ask for the file"
                contents.others.append(Refused(file.path, said))
            elif match is not None:
                contents.handed_in.append(_handed_in(file, match))
        return contents


def _handed_in(file: Found, match: re.Match[str]) -> HandedIn:
    name, number = match["name"], match["number"]
    folder = f"{name}_{number}" if number else name
    own = (match["file"] or file.name) if match.string == file.name else file.name
    named = match.string[: match.start("file")] if match["file"] else match.string  # without the file's own name
    return HandedIn(Person(folder=folder, key=f"participant {folder}", name=name), file, own, named=named)
