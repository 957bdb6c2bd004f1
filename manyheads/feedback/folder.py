"""The folder as nbgrader names it: feedback/<student>/<assignment>/, with a page for each notebook.

`nbgrader release_feedback` hands out <notebook>.html, and wants timestamp.txt and submission_secret.txt of the
submission beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations
from pathlib import Path, PurePosixPath

from ..course import Course
from ..report.labels import labels_of
from ..report.pages import student_page
from ..result import Result
from ..submission import Unreadable, read_bytes
from ..submission.roster import folded
from .markdown import feedback_markdown, one_exercise

FOLDER = "feedback"
OF_NBGRADER = ("timestamp.txt", "submission_secret.txt")


def folder_files(
    course: Course, result: Result, submitted: Path | None = None
) -> Iterator[tuple[PurePosixPath, bytes]]:
    """The files of one result, by their paths: the whole as page and Markdown, and a page for each exercise."""
    labels = labels_of(course)
    folder = PurePosixPath(FOLDER, result.student, result.assignment)
    yield folder / f"{result.assignment}.html", student_page(result.student, [result], labels).encode()
    yield folder / f"{result.assignment}.md", feedback_markdown(result, labels).encode()
    stems = {each.id: each.stem for each in course.exercises if each.assignment.id == result.assignment}
    for exercise in result.exercises:
        if exercise.id in stems:
            page = student_page(result.student, [one_exercise(result, exercise.id)], labels)
            yield folder / f"{stems[exercise.id]}.html", page.encode()
    if submitted is not None:
        yield from _of_nbgrader(folder, submitted / result.student / result.assignment)


def folded_together(folder: Path, students: Collection[str]) -> tuple[str, str] | None:
    """Two students whose names are one folder here, where upper and lower case, or forms of a letter, are the same."""
    alike: dict[str, list[str]] = {}
    for student in sorted(set(students)):
        alike.setdefault(folded(student), []).append(student)
    for names in alike.values():
        for first, second in combinations(names, 2):
            (folder / first).mkdir(parents=True, exist_ok=True)
            if (folder / second).exists() and (folder / first).samefile(folder / second):
                return first, second
    return None


def _of_nbgrader(folder: PurePosixPath, handed_in: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    for name in OF_NBGRADER:
        try:
            yield folder / name, read_bytes(handed_in / name, 1)
        except Unreadable:
            continue
