"""Folders of students, however deep, as people lay them out: <student>/<assignment>/…, <student>/…, <student>.zip."""

from __future__ import annotations

from collections.abc import Sequence

from ..course import Course
from ..submission import ENDINGS
from .exercise import Exercises
from .found import Found, Refused, own_name
from .platform import Contents, Download, HandedIn, Person, unwrapped

_MAILS = (".eml", ".msg")
_MAIL = "is a mail. Next: save what is attached to it, in a folder with the student's name"


class Folders:
    """Folders: what is no platform's."""

    name = "folders"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """All files stand at the same depth below their students' folders; a loose one, also beside another platform's, is nobody's."""
        ids = {_plain(assignment.id) for assignment in course.assignments}
        exercises = {_plain(name) for exercise in course.exercises for name in (exercise.id, exercise.stem)}
        depth = _depth(download.files, ids, exercises, Exercises(course))
        contents = Contents()
        left = {file.path for file in files}
        others_folders = {file.path[:-1] for file in download.files if file.path not in left}
        for file in files:
            folders = file.path[:-1]
            whole = depth < 0 and len(files) == len(download.files)  # the download is one student's
            if own_name(file.name).lower().endswith(_MAILS):
                contents.others.append(Refused(file.path, _MAIL))
            elif folders not in others_folders and (whole or 0 <= depth < len(folders)):
                student = unwrapped(download.name if whole else folders[depth])
                person = Person(folder=student, key=f"folder {student}", name=student)
                contents.handed_in.append(HandedIn(person, file, file.name))
            else:
                reason = "is in no student's folder. Next: put it into one, then the same command again"
                contents.others.append(Refused(file.path, reason))
        return contents


def _depth(files: Sequence[Found], ids: set[str], exercises: set[str], known: Exercises) -> int:
    """At which depth students' folders stand; -1 if the download is itself a student's.

    Where folders differ, they are students': ada and bela in class/hw1/ada, class/hw1/bela. Only if no student stands beside another,
    an assignment's folder or an attempt says that the folder above it is the student's; so does a folder for each exercise.
    An attempt whose name says more than its exercise's does not: it may be another student's than what stands in a folder beside it.
    """
    depth = 0
    while True:
        folders = {file.path[depth] for file in files if len(file.path) > depth + 1}
        names = set(map(_plain, folders))
        loose = [own_name(file.name) for file in files if len(file.path) == depth + 1]
        loose = [name for name in loose if name.lower().endswith(ENDINGS)]
        if ids & names or (names and names <= exercises):
            transposed = depth == 0 and all(len(file.path) > 2 for file in files)  # <assignment>/<student>/…
            return 1 if transposed else depth - 1
        if len(folders) > 1:
            return depth
        if loose or not folders:
            says_more = any(known.names(name) and not known.is_plain(name) for name in loose)
            return depth if folders and says_more else depth - 1
        depth += 1


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
