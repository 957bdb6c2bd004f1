"""Sakai: "Download All" gives "HW 1/Lovelace, Ada(al1)/Submission attachment(s)/04_reshape_dance.py"; flat, with "_" between the last three.

Beside the attachments stand what the student typed, and what went back: a comment, a text, "Feedback Attachment(s)/".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..course import Course
from .found import Found, Refused
from .platform import Contents, Download, HandedIn, Person

SUBMITTED, RETURNED = "submission attachment(s)", "feedback attachment(s)"
_FLAT = re.compile(rf"(?P<who>.+\([^()]+\))_{re.escape(SUBMITTED)}_(?P<file>.+)", re.DOTALL | re.IGNORECASE)
_WHO = re.compile(r"(?P<name>.+?) ?\((?P<id>[^()]+)\)", re.DOTALL)
_TEXT = "_submissiontext.html"
_OWN = ("comments.txt", "feedbacktext.html", "grades.csv", "grades.xls", "grades.xlsx", "timestamp.txt")


class Sakai:
    """Sakai."""

    name = "Sakai"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """The files by the folder above their attachments' folder, or by their own names."""
        contents, typed = Contents(), list[tuple[str, Found]]()
        for file in files:
            if flat := _FLAT.fullmatch(download.trusted(file)[-1]):
                own = flat["file"] if flat.string == file.name else file.name
                contents.handed_in.append(HandedIn(_person(flat["who"]), file, own))
            elif at := download.below_trusted(file, (SUBMITTED, RETURNED)):
                if file.path[at].casefold() == SUBMITTED:
                    contents.handed_in.append(HandedIn(_person(file.path[at - 1]), file, file.name))
                else:
                    contents.feedback.append(file)
        if not contents.handed_in and not contents.feedback:
            return contents
        for file in files:
            if file.name.casefold().endswith(_TEXT):
                typed.append((file.path[-2] if len(file.path) > 1 else "", file))
            elif file.name.casefold() in _OWN and len(file.path) - 2 <= download.parting:
                contents.nobodys.append(file)
        have_handed_in = {each.person.key for each in contents.handed_in}
        contents.nobodys += [file for who, file in typed if _person(who).key in have_handed_in]
        said = "is text typed into Sakai, and no file. Next: ask for the file"
        contents.others = [Refused(file.path, said) for who, file in typed if _person(who).key not in have_handed_in]
        return contents


def _person(who: str) -> Person:
    match = _WHO.fullmatch(who)
    folder, name = (match["id"], match["name"]) if match else (who, who)
    return Person(folder=folder, key=f"user {folder}", name=name, email=folder if "@" in folder else "")
