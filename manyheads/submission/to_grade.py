"""What one run grades of a folder of submissions, when each was handed in, what of it cannot be read, and what else lies there.

The time is of nbgrader's timestamp.txt, or what `course collect` remembers. A file's own time is never taken: copying,
unpacking and mending change it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..course import Assignment, Course
from ..course.dates import read_moment
from ..errors import CourseFault
from ..result import HandedIn
from . import NotGraded, Submission, Unreadable, closed_in, find_submissions, is_student, read_text, shown
from .lay_out import Memory, read_memory
from .not_readable import is_opened

TIMESTAMP = "timestamp.txt"
MARKS_LATE = ("Canvas",)  # what such a platform does not call late was in time


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
    memory = read_memory(submitted)
    kept = _kept_unread(course, submitted, memory)
    closed = {each: tuple(shown(str(path.relative_to(submitted))) for path in closed_in(each)) for each in found}
    unread = {each: names for each, names in (closed | kept).items() if names and student in ("", each.student)}
    found = sorted({*found, *unread}, key=lambda each: (each.student, course.assignments.index(each.assignment)))
    # What cannot be read is told of its exercises, and not once more as an empty folder.
    told = {f"{each.student}/{each.assignment.id}" for each in unread if not closed.get(each)}
    elsewhere = {each.id for each in course.assignments}.difference(each.id for each in assignments)
    others = [o for o in others if o.path not in told and not elsewhere.intersection(o.path.split("/")[1:2])]
    wanted = [each for each in found if each.assignment in assignments]
    if exercises:
        wanted = [each for each in wanted if any(one.id in exercises for one in each.assignment.exercises)]
    return ToGrade(wanted, others, unread, handed_in(submitted, found))


def _kept_unread(course: Course, submitted: Path, memory: Memory) -> dict[Submission, tuple[str, ...]]:
    """Return the names of what `course collect` could not read, and nobody has opened since."""
    found = {}
    for student, kept in memory.not_readable.items():
        for each in course.assignments if is_student(student) else ():
            if (names := kept.get(each.id)) and not is_opened(submitted, student, each.id, memory):
                found[Submission(student, each, submitted / student / each.id)] = tuple(map(shown, names))
    return found


def handed_in(submitted: Path, submissions: Sequence[Submission]) -> dict[Submission, HandedIn]:
    """Return when each was handed in; who is not in it, nobody knows of."""
    memory = read_memory(submitted)
    times = {submission: _stamped(submission) or _remembered(submission, memory) for submission in submissions}
    return {submission: time for submission, time in times.items() if time is not None}


def _stamped(submission: Submission) -> HandedIn | None:
    """Read nbgrader's own file, which means UTC without a zone. None where it is missing or says no time."""
    path = submission.folder / TIMESTAMP
    if not os.path.isfile(path) or path.is_symlink():  # False in a folder that may not be entered
        return None
    try:
        time = read_moment(read_text(path, 1), "UTC")
    except Unreadable:
        return None
    return HandedIn(source=TIMESTAMP, time=time) if time else None


def _remembered(submission: Submission, memory: Memory) -> HandedIn | None:
    """Return the latest time of the files that were collected, or what a platform says that marks what is late; else None."""
    start = f"{submission.student}/{submission.assignment.id}/"
    origins = [origin for path, origin in memory.files.items() if path.startswith(start)]
    times = [time for origin in origins if (time := read_moment(origin.handed_in))]
    if origins and len(times) == len(origins):
        return HandedIn(source=origins[0].platform, time=max(times))
    if late := next((origin for origin in origins if origin.late), None):
        return HandedIn(source=late.platform, late=True)
    marked = bool(origins) and all(origin.platform in MARKS_LATE for origin in origins)
    return HandedIn(source=origins[0].platform) if marked else None
