"""What one run grades of a folder of submissions, and what else lies there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..course import Assignment, Course
from ..errors import CourseFault
from ..result import HandedIn
from . import NotGraded, Submission, closed_in, find_submissions
from .handed_in import handed_in
from .not_readable import not_readable


@dataclass(frozen=True)
class ToGrade:
    """What one run grades.

    submissions: ordered by student and assignment. others: what lies there and is not graded.
    not_readable: names of what was handed in and cannot be read. handed_in: when, as far as anything says.
    """

    submissions: list[Submission]
    others: list[NotGraded]
    not_readable: dict[Submission, tuple[str, ...]]
    handed_in: dict[Submission, HandedIn]


def to_grade(
    course: Course, submitted: Path, assignments: Sequence[Assignment], exercises: Collection[str], student: str = ""
) -> ToGrade:
    """Return what is there of these assignments. Raises CourseFault, also where the student has nothing there.

    Args:
        course: the course.
        submitted: the folder.
        assignments: those that are graded.
        exercises: ids of those that are graded; empty: all.
        student: who alone is graded; "" for everybody.
    """
    found, others = find_submissions(course, submitted)
    if student:
        found, others = [each for each in found if each.student == student], []
        if not found:
            raise CourseFault(
                f"{submitted} has nothing of {student}. Next: course grade … --only STUDENT/EXERCISE, as in results/"
            )
    unread = {s: names for s, names in not_readable(course, submitted, found).items() if student in ("", s.student)}
    found = sorted({*found, *unread}, key=lambda each: (each.student, course.assignments.index(each.assignment)))
    empty = {f"{s.student}/{s.assignment.id}" for s in unread if not closed_in(course, s.folder.parent)}
    elsewhere = {each.id for each in course.assignments}.difference(each.id for each in assignments)
    return ToGrade(
        [
            each
            for each in found
            if each.assignment in assignments
            and (not exercises or any(e.id in exercises for e in each.assignment.exercises))
        ],
        [  # without what cannot be read, which is told of its exercises
            each for each in others if each.path not in empty and not elsewhere.intersection(each.path.split("/")[1:2])
        ],
        unread,
        handed_in(submitted, found),
    )
