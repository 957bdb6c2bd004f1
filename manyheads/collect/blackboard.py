"""Blackboard: names such as HW1_ada_attempt_2026-11-20-10-11-12_04_reshape_dance.py, of files or of folders.

What comes before the user's name is the assignment's: it is what all the names of a download have in common, up to the last underscore.
Of a single name nobody can tell the two apart, and it stays whole. Beside each attempt's files stands a note on it, the same name with ".txt".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..course import Course
from .found import Found, Refused
from .platform import Contents, Download, HandedIn, Person, unwrapped

_PART = re.compile(r"(?P<who>.+?)_attempt_(?P<time>\d{4}(?:-\d{2}){5})(?:_(?P<file>.+)|(?P<note>\.txt))?", re.DOTALL)


class Blackboard:
    """Blackboard."""

    name = "Blackboard"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """The files by their own names, or by those of their folders."""
        parts = ((file, map(_PART.fullmatch, map(unwrapped, download.trusted(file)))) for file in files)
        found = [(file, match) for file, matches in parts if (match := next(filter(None, matches), None))]
        prefix = _prefix({match["who"] for _, match in found})
        handed_in = [_handed_in(file, match, prefix) for file, match in found if not match["note"]]
        have_handed_in = {each.person.key for each in handed_in}
        notes = [(file, _handed_in(file, match, prefix).person.key) for file, match in found if match["note"]]
        said = "is Blackboard's note on an attempt without a file. Next: read it, and ask for the file"
        return Contents(
            handed_in,
            others=[Refused(file.path, said) for file, key in notes if key not in have_handed_in],
            nobodys=[file for file, key in notes if key in have_handed_in],
        )


def _prefix(names: set[str]) -> str:
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)  # of sorted names these differ first
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rfind("_", 0, same) + 1]


def _handed_in(file: Found, match: re.Match[str], prefix: str) -> HandedIn:
    user = match["who"].removeprefix(prefix)
    own = match["file"] if match["file"] and match.string == file.name else file.name
    person = Person(folder=user, key=f"user {user}", name=user)
    return HandedIn(person, file, own, order=float(match["time"].replace("-", "")))
