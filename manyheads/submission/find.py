"""Find submissions: submitted/<student>/<assignment>/NN_name.py or .ipynb."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..course import Assignment, Course
from ..errors import CourseFault

_NAME = re.compile(r"(?!.*::)[^/\\]{1,120}")  # `::` starts a command to a CI runner


class SubmissionError(CourseFault):
    """The path holds no submissions. The text ends with what to do next."""


@dataclass(frozen=True)
class Submission:
    """The folder that one student handed in for one assignment, not read yet."""

    student: str
    assignment: Assignment
    folder: Path


def find_submissions(course: Course, submitted: Path) -> tuple[list[Submission], list[str]]:
    """All submissions below a folder, ordered by student, and a sentence for each folder name that is refused.

    Raises SubmissionError if there is none.
    """
    if not submitted.is_dir():
        raise SubmissionError(
            f"{submitted} is not a folder. Next: course grade FOLDER, with FOLDER/<student>/<assignment>/"
        )
    found, refused = [], []
    for folder in sorted(submitted.iterdir(), key=lambda p: p.name):
        if folder.name.startswith(".") or folder.is_symlink() or not folder.is_dir():
            continue
        if not _is_plain(folder.name):
            refused.append(f"A folder with the name {folder.name!a} is not graded: rename it to the student's id.")
            continue
        found += list(_of_student(course, folder))
    if not found and not refused:
        ids = ", ".join(assignment.id for assignment in course.assignments)
        raise SubmissionError(
            f"{submitted} holds no submission ({submitted}/<student>/<assignment>/, with an assignment of: {ids}). "
            "Next: course grade examples/submitted --out results"
        )
    return found, refused


def _of_student(course: Course, folder: Path) -> Iterator[Submission]:
    for assignment in course.assignments:
        path = folder / assignment.id
        if path.is_dir() and not path.is_symlink():
            yield Submission(folder.name, assignment, path)


def _is_plain(name: str) -> bool:
    return name.isprintable() and bool(_NAME.fullmatch(name))
