"""Microsoft Teams: an assignment's files lie in "Submitted files/Ada Lovelace/HW1/Version 2/", beside "Working files/".

Both are folders of the library that Teams makes for a class. Working files are drafts: a student who handed in has both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..course import Course
from .found import Found, Refused
from .platform import Contents, Download, HandedIn, Person, unwrapped

SUBMITTED, DRAFTS = "Submitted files", "Working files"
_BESIDE = f"stands beside {SUBMITTED}, and was not handed in. Next: move it there, if it is to be graded"
_VERSION = re.compile(r"Version (\d{1,9})")


class Teams:
    """Microsoft Teams."""

    name = "Teams"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """The files by the folder that stands in one of these two."""
        contents, drafts = Contents(), list[tuple[str, Found]]()
        parents = _parents_of_submitted(files, download)
        for file in files:
            above = download.trusted(file)[: len(file.path) - 1]
            place = next((i for i, folder in enumerate(above) if folder in (SUBMITTED, DRAFTS)), None)
            if place is None:
                if any(file.path[: len(parent)] == parent for parent in parents):
                    contents.others.append(Refused(file.path, _BESIDE))
                continue
            if len(file.path) < place + 3:
                continue
            student = unwrapped(file.path[place + 1])
            if file.path[place] == DRAFTS:
                drafts.append((student, file))
            else:
                versions = [int(match[1]) for match in map(_VERSION.fullmatch, file.path[place + 2 : -1]) if match]
                person = Person(folder=student, key=f"user {student}", name=student)
                contents.handed_in.append(HandedIn(person, file, file.name, order=float(max(versions, default=0))))
        have_handed_in = {each.person.name for each in contents.handed_in}
        contents.nobodys = [file for student, file in drafts if student in have_handed_in]
        reason = (
            f"is a draft of somebody who has handed in nothing. Next: move it to {SUBMITTED}, if it is to be graded"
        )
        contents.others += [Refused(file.path, reason) for student, file in drafts if student not in have_handed_in]
        return contents


def _parents_of_submitted(files: Sequence[Found], download: Download) -> set[tuple[str, ...]]:
    """The folders that hold a folder of submitted files: whatever else is in them is Teams' or the teacher's."""
    found = set()
    for file in files:
        above = download.trusted(file)[: len(file.path) - 1]
        if SUBMITTED in above:
            found.add(file.path[: above.index(SUBMITTED)])
    return found
