"""Folders of students, however deep, as people lay them out: <student>/<assignment>/…, <student>/…, <student>.zip."""

from __future__ import annotations

from collections.abc import Sequence

from ..course import Course
from ..submission import is_archive
from .found import Found, Refused
from .platform import Contents, HandedIn, Person, unwrapped


class Folders:
    """Folders: what is no platform's."""

    name = "folders"

    def read(self, files: Sequence[Found], download: str, course: Course) -> Contents:
        """A student is the folder above an assignment's; where there is none, the first folder."""
        ids = {_plain(assignment.id) for assignment in course.assignments}
        root = _root(files, ids) if is_archive(download) else 0
        handed_in, others = [], []
        for file in files:
            folders = file.path[root:-1]
            at = next((i for i, part in enumerate(folders) if _plain(part) in ids), None)
            above = folders[:1] if at is None else folders[:at][-1:]
            if not above and (at == 0 or is_archive(download)):  # ada.zip, or a student's folder itself
                above = (download,)
            if above:
                student = unwrapped(above[0])
                handed_in.append(HandedIn(Person(folder=student, key=f"folder {student}"), file, file.name))
            else:
                reason = "is in no student's folder. Next: put it into one, or collect it with its platform's own name"
                others.append(Refused(file.path, reason))
        return Contents(handed_in, others)


def _root(files: Sequence[Found], ids: set[str]) -> int:
    """How many folders stand around all students: two in class/hw1/ada, class/hw1/bela; none where no folders differ."""
    for depth in range(min((len(file.path) - 1 for file in files), default=0)):
        heads = {file.path[depth] for file in files}
        if ids & set(map(_plain, heads)):
            return 0  # the folders above it say whose the files are
        if len(heads) > 1:
            return depth
    return 0


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
