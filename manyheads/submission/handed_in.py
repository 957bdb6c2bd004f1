"""When submissions were handed in: from a CSV file, nbgrader's timestamp.txt, or what `course collect` remembers.

A file's own time is never taken: copying, unpacking and mending change it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..course import Course
from ..course.dates import moment
from ..course.named import UnknownAssignment, assignment_named
from ..errors import CourseFault
from ..result import HandedIn
from . import Submission, Unreadable, read_text
from .csv_rows import csv_rows, mend
from .lay_out import Memory, read_memory

TIMESTAMP = "timestamp.txt"
MARKS_LATE = ("Canvas",)  # what such a platform does not call late was in time
_FORM = "Its first line names its columns: student, handed_in, and assignment where there are several"

Times = Mapping[tuple[str, str], HandedIn]  # by the student's folder and the assignment; "" for any


def handed_in(
    course: Course, submitted: Path, submissions: Sequence[Submission], times: Times | None = None
) -> dict[Submission, HandedIn]:
    """Return when each was handed in; who is not in it, nobody knows of. times: in place of course.yaml's. Raises CourseFault."""
    memory, handed, listed = read_memory(submitted), {}, times or {}
    if times is None and (path := course.beside(course.file.times)):
        listed = read_times(course, path)
    for submission in submissions:
        key, student = submission.assignment.id, submission.folder.parent.name
        time = (
            listed.get((student, key))
            or listed.get((student, ""))
            or _stamped(submission)
            or _remembered(submission, memory)
        )
        if time is not None:
            handed[submission] = time
    return handed


def read_times(course: Course, path: Path) -> Times:
    """Return the CSV file. Raises CourseFault, which names the line."""
    return dict(_rows(course, path))


def _rows(course: Course, path: Path) -> Iterator[tuple[tuple[str, str], HandedIn]]:
    for where, row in csv_rows(path, ("student", "handed_in"), "--times", f" {_FORM}."):
        student, time, assignment = (row.get(name, "") for name in ("student", "handed_in", "assignment"))
        if assignment or student:
            try:
                named = assignment_named(course, assignment).id
            except UnknownAssignment as error:
                form = "" if assignment else f" {_FORM}."
                raise CourseFault(f"{where}: {error}{form} {mend(path)}") from None
            assignment = named if assignment else ""
        try:
            when = moment(time, course.file.time_zone or "") if time else None
        except ValueError as error:
            raise CourseFault(f"{where}: {error}. {mend(path)}") from None
        if when is not None:
            yield (student, assignment), HandedIn(source=path.name, time=when)


def _stamped(submission: Submission) -> HandedIn | None:
    """Read nbgrader's own file, which means UTC without a zone. None where it is missing or says no time."""
    path = submission.folder / TIMESTAMP
    if not os.path.isfile(path) or path.is_symlink():  # False in a folder that may not be entered
        return None
    try:
        return HandedIn(source=TIMESTAMP, time=moment(read_text(path, 1).strip(), "UTC"))
    except (Unreadable, ValueError, OverflowError):
        return None


def _remembered(submission: Submission, memory: Memory) -> HandedIn | None:
    """Return the latest time of the files that were collected, or what a platform says that marks what is late; else None."""
    start = f"{submission.folder.parent.name}/{submission.assignment.id}/"
    origins = [origin for path, origin in memory.files.items() if path.startswith(start)]
    late = next((origin for origin in origins if origin.late), None)
    times = [origin.handed_in for origin in origins]
    if origins and all(times):
        when = max(datetime.fromisoformat(time).astimezone(UTC) for time in times)
        return HandedIn(source=origins[0].platform, time=when)
    if late is not None:
        return HandedIn(source=late.platform, late=True)
    marked = bool(origins) and all(o.platform in MARKS_LATE and o.late is not None for o in origins)
    return HandedIn(source=origins[0].platform) if marked else None
