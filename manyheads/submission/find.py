"""Find submissions: submitted/<student>/<assignment>/NN_name.py or .ipynb."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from ..course import Assignment, Course
from ..errors import CourseFault
from .left_over import ENDINGS, NAME, LeftOver, NotGraded, is_noise, shown

_NAME = re.compile(r"(?!.*::)[^/\\]{1,120}")  # `::` starts a command to a CI runner
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
_REFUSED = "is not graded, for its name could break a page or a log. Next: rename it to the student's id"


@dataclass(frozen=True)
class Submission:
    """The folder that one student handed in for one assignment, not read yet."""

    student: str
    assignment: Assignment
    folder: Path


def find_submissions(course: Course, submitted: Path) -> tuple[list[Submission], list[NotGraded]]:
    """Return all submissions below a folder, ordered by student, and whatever else lies there, with the reason.

    Raises CourseFault if there is nothing at all.
    """
    if not submitted.is_dir():
        raise CourseFault(
            f"{submitted} is not a folder. Next: course grade FOLDER, with FOLDER/<student>/<assignment>/"
        )
    submissions, others, at_top = list[Submission](), list[NotGraded](), list[NotGraded]()
    left_over = LeftOver(course, submitted)
    for folder in sorted(submitted.iterdir(), key=lambda p: p.name):
        if is_noise(folder.name):
            continue
        if folder.name.startswith(".") or folder.is_symlink() or not folder.is_dir():
            at_top.append(left_over.at_top(folder))
        elif not is_student(folder.name):
            at_top.append(NotGraded(path=shown(folder.name), reason=_REFUSED))
        else:
            closed = closed_in(course, folder)
            others += [left_over.closed(path) for path in closed] or left_over.of_student(folder)
            # What is closed may be of any assignment.
            found = [each for each in course.assignments if folder in closed or _is_folder(folder / each.id)]
            submissions += [Submission(folder.name, each, folder / each.id) for each in found]
    others = [*left_over.some(submitted, iter(at_top)), *others]
    if not submissions and not others:
        ids = ", ".join(assignment.id for assignment in course.assignments)
        raise CourseFault(
            f"{submitted} holds no submission ({submitted}/<student>/<assignment>/, with an assignment of: {ids}). "
            f"Next: course collect DOWNLOAD --out {shlex.quote(str(submitted))}"
        )
    return submissions, others


def is_reserved(name: str) -> bool:
    """Return whether Windows can have no file of this name, whatever its suffix."""
    return bool(_RESERVED.fullmatch(name.casefold()))


def is_student(name: str) -> bool:
    """Return whether a folder of this name can be a student's: results are kept under it, and pages show it."""
    return name.isprintable() and bool(_NAME.fullmatch(name)) and name.casefold() != NAME


def closed_in(course: Course, folder: Path) -> list[Path]:
    """Return what of a student's folder this process may not read: the folder itself, an assignment's, or attempts in it."""
    may_enter = os.R_OK | os.X_OK
    if not os.access(folder, may_enter):
        return [folder]
    closed = []
    for assignment in course.assignments:
        path = folder / assignment.id
        if _is_folder(path) and not os.access(path, may_enter):
            closed.append(path)
        elif _is_folder(path):
            stems = (stem for exercise in assignment.exercises for stem in exercise.stems)
            attempts = [path / f"{stem}{ending}" for stem in stems for ending in ENDINGS]
            closed += [attempt for attempt in attempts if attempt.is_file() and not os.access(attempt, os.R_OK)]
    return closed


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
