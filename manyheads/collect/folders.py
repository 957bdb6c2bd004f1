"""Folders of students, however deep, as people lay them out: <student>/<assignment>/…, <student>/…, <student>.zip."""

from __future__ import annotations

from collections.abc import Sequence

from ..course import Course
from ..submission import ENDINGS
from .found import Found, Refused, own_name
from .platform import Contents, Download, HandedIn, Person, unwrapped


class Folders:
    """Folders: what is no platform's."""

    name = "folders"

    def read(self, files: Sequence[Found], download: Download, course: Course) -> Contents:
        """All files stand at the same depth below their students' folders; a loose one, also beside another platform's, is nobody's."""
        ids = {_plain(assignment.id) for assignment in course.assignments}
        exercises = {_plain(name) for exercise in course.exercises for name in (exercise.id, exercise.stem)}
        depth = _depth(download.files, ids, exercises)
        contents = Contents()
        left = {file.path for file in files}
        others_folders = {file.path[:-1] for file in download.files if file.path not in left}
        for file in files:
            folders = file.path[:-1]
            whole = depth < 0 and len(files) == len(download.files)  # the download is one student's
            if folders not in others_folders and (whole or 0 <= depth < len(folders)):
                student = unwrapped(download.name if whole else folders[depth])
                person = Person(folder=student, key=f"folder {student}", name=student)
                contents.handed_in.append(HandedIn(person, file, file.name))
            else:
                reason = "is in no student's folder. Next: put it into one, then the same command again"
                contents.others.append(Refused(file.path, reason))
        return contents


def _depth(files: Sequence[Found], ids: set[str], exercises: set[str]) -> int:
    """At which depth students' folders stand; -1 if the download is itself a student's.

    Where folders differ, they are students': ada and bela in class/hw1/ada, class/hw1/bela. Only if no student stands beside another,
    an assignment's folder or an attempt says that the folder above it is the student's; so does a folder for each exercise.
    """
    depth = 0
    while True:
        folders = {file.path[depth] for file in files if len(file.path) > depth + 1}
        names = set(map(_plain, folders))
        loose = any(len(file.path) == depth + 1 and own_name(file.name).lower().endswith(ENDINGS) for file in files)
        if ids & names or (names and names <= exercises):
            transposed = depth == 0 and all(len(file.path) > 2 for file in files)  # <assignment>/<student>/…
            return 1 if transposed else depth - 1
        if len(folders) > 1:
            return depth
        if loose or not folders:
            return depth - 1
        depth += 1


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
