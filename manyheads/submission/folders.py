"""Folders of students, however deep, as people lay them out: <student>/<assignment>/…, <student>/…, <student>.zip."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from ..course import Course
from . import ENDINGS
from .left_over import plain, shown
from .platforms import Contents, Download, HandedIn, person_called, unwrapped
from .read_download import Found, Refused, own_name
from .which_exercise import Exercises

_NO_NAME = (
    "says of no student whose it is. Next: mkdir STUDENT && mv {} STUDENT/ where it lies, then: course collect STUDENT"
)


def folders_of_students(files: Sequence[Found], download: Download, course: Course) -> Contents:
    """Return all files stand at the same depth below their students' folders; a loose one, also beside another platform's, is nobody's."""
    depth = _depth(download.files, course)
    only = _only_folder(download, depth)
    if _is_named_by_archive(download, depth):
        depth = -1
    # The one folder of an archive is all that says whose it is.
    alone = _may_be_of_one(download, course) and only != "" and not download.is_known(unwrapped(only)) and depth >= 0
    whole = depth < 0 and len(files) == len(download.files)  # the download is one student's
    contents = Contents()
    left = {file.path for file in files}
    others_folders = {file.path[:-1] for file in download.files if file.path not in left}
    for file in files:
        folders = _folders(file)
        if file.path == (download.name,) and file.content is not None:
            contents.others.append(Refused(file.path, _NO_NAME.format(quote(shown(file.name)))))
        elif folders not in others_folders and (whole or 0 <= depth < len(folders)):
            name = download.name if whole else folders[depth]
            student = unwrapped(name)
            archive = name if name != student else download.name if only and not whole else ""
            person = person_called(student, download.name if alone else "")
            contents.handed_in.append(HandedIn(person, file, file.name, archive=archive))
        else:
            reason = "is in no student's folder. Next: put it into one, then the same command again"
            contents.others.append(Refused(file.path, reason))
    return contents


def is_of_one(download: Download, course: Course) -> bool:
    """Return whether all of an archive lies in one folder, which is not one of several students'."""
    return _may_be_of_one(download, course) and _only_folder(download, _depth(download.files, course)) != ""


def _may_be_of_one(download: Download, course: Course) -> bool:
    """Return whether it is an archive whose name is no assignment's and no exercise's: such a one is of a class."""
    name = unwrapped(download.name)
    return name != download.name and plain(name) not in {*_ids(course), *_exercises(course)}


def _only_folder(download: Download, depth: int) -> str:
    """Return the one folder at this depth that could be a student's; "" where there is none, or several."""
    names = _names_at(download.files, depth)
    return next(iter(names)) if len(names) == 1 else ""


def _names_at(files: Sequence[Found], depth: int) -> set[str]:
    return {folders[depth] for folders in map(_folders, files) if 0 <= depth < len(folders)}


def _folders(file: Found) -> tuple[str, ...]:
    """Return the folders that a file lies in; an archive that is not opened stands for what would be in it."""
    return file.path if file.is_folder else file.path[:-1]


def _is_named_by_archive(download: Download, depth: int) -> bool:
    """Return whether the download's own name says whose all of it is.

    A name within is believed only where the archive's is nobody's: students choose the names of folders.
    """
    folders, student = [unwrapped(name) for name in _names_at(download.files, depth)], unwrapped(download.name)
    if student != download.name and download.is_known(student):
        return len(folders) == 1 or not any(map(download.is_known, folders))
    return download.is_of_one and not any(map(download.is_known, folders))


def _depth(files: Sequence[Found], course: Course) -> int:
    """Return at which depth students' folders stand; -1 if the download is itself a student's.

    Where folders differ, they are students': ada and bela in class/hw1/ada, class/hw1/bela. Only if no student stands beside another,
    an assignment's folder or an attempt says that the folder above it is the student's; so does a folder for each exercise.
    An attempt whose name says more than its exercise's does not: it may be another student's than what stands in a folder beside it.
    """
    ids, exercises = _ids(course), _exercises(course)
    known, depth = Exercises(course), 0
    while True:
        folders = _names_at(files, depth)
        names = set(map(plain, folders))
        loose = [own_name(file.name) for file in files if len(file.path) == depth + 1]
        loose = [name for name in loose if name.lower().endswith(ENDINGS)]
        if ids & names or (names and names <= exercises):
            transposed = depth == 0 and all(len(file.path) > 2 for file in files)  # <assignment>/<student>/…
            return 1 if transposed else depth - 1
        if len(folders) > 1:
            return depth
        if loose or not folders:
            says_more = any(known.named(name) and not known.is_plain(name) for name in loose)
            return depth if folders and says_more else depth - 1
        depth += 1


def _ids(course: Course) -> set[str]:
    return {plain(assignment.id) for assignment in course.assignments}


def _exercises(course: Course) -> set[str]:
    return {plain(name) for exercise in course.exercises for name in (exercise.id, exercise.stem)}
