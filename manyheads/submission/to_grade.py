"""What there is to grade: submissions, when each was handed in, what else lies there, and what cannot be read.

The time is of nbgrader's timestamp.txt, or what `course collect` remembers. A file's own time is never taken: copying,
unpacking and mending change it. What `course collect` cannot read it notes as Unread; nobody loses points for that.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..course import Assignment, Course
from ..course.dates import read_moment
from ..errors import CourseFault
from ..result import HandedIn
from . import ENDINGS, Unreadable, read_text
from .archives import own_name
from .find import NotGraded, Submission, closed_in, find_submissions, is_student, shown
from .lay_out import Memory, read_memory, refuse_links
from .platforms import HandIn, unwrapped
from .which_exercise import Exercises, place_of

TIMESTAMP = "timestamp.txt"
MOST_NAMES = 10  # of one student's files that cannot be read, in what is remembered and said
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

    exercises: ids of those that are graded; empty: all. student: who alone is graded; "" for everybody.
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
    return ToGrade(wanted, others, unread, handed_in(found, memory))


def _kept_unread(course: Course, submitted: Path, memory: Memory) -> dict[Submission, tuple[str, ...]]:
    """Return the names of what `course collect` could not read, and nobody has opened since."""
    found = {}
    for student, kept in memory.not_readable.items():
        for each in course.assignments if is_student(student) else ():
            if (names := kept.get(each.id)) and not _is_opened(submitted, student, each.id, memory):
                found[Submission(student, each, submitted / student / each.id)] = tuple(map(shown, names))
    return found


def handed_in(submissions: Sequence[Submission], memory: Memory) -> dict[Submission, HandedIn]:
    """Return when each was handed in; who is not in it, nobody knows of."""
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


@dataclass
class Unread:
    """What one run could not read. names: of files, by student and assignment. memory: of earlier runs."""

    exercises: Exercises
    out: Path
    memory: Memory
    names: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    not_taken: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def add(self, files: Iterable[tuple[str, HandIn]], where: str, beside: Collection[Assignment]) -> int:
        """Note a download's files, each with whose it is, and say so; return how many are of another assignment than is asked for.

        where: the download's name. beside: the assignments of what can be read there.
        """
        left_out = 0
        for student, each in files:
            path = "/".join(map(shown, each.member.path))
            ids = [assignment.id for assignment in self._assignments(each, where, beside)]
            for id_ in ids:
                self.names[student, id_].append(path)
            told = f"{shown(student)}: handed in, not readable: {where}: {path} {each.member.closed.partition('. Next: ')[0]}"
            if not ids:
                left_out += 1
            elif all(_is_opened(self.out, student, id_, self.memory) for id_ in ids):
                self.said.append(f"{told}; what you have laid into {shown(student)}/{ids[0]}/ is graded in its place")
            else:
                into = "/".join([str(self.out / student), *ids[: len(ids) == 1]])
                next_ = f"Next: open it by hand, and put the files into {into}/; or ask for the files"
                self.not_taken.append(f"{told}. {next_}")
        return left_out

    def _assignments(self, file: HandIn, where: str, beside: Collection[Assignment]) -> Sequence[Assignment]:
        """Return those that a file may be of: by its name, a folder's or the download's, or what else was handed in; else all."""
        known = (self.exercises.named(unwrapped(own_name(part))) for part in (where, file.name, *file.member.path))
        named = {place_of(found)[0].id for found in known if found}
        course, only = self.exercises.course, self.exercises.only
        if only is not None:
            return [only] if only.id in named or not named else []
        every = course.assignments
        return [a for a in every if a.id in named] or [a for a in every if a in beside] or every

    def record(self, laid: Collection[tuple[str, str]]) -> None:
        """Keep it for whoever grades, and forget what has been handed in again. laid: of whom there are files, by assignment."""
        for student, id_ in sorted({*laid} - self.names.keys()):
            if before := self.memory.not_readable.get(student, {}).get(id_):
                self.memory.note(["not readable", student, id_, []])
                said = f"{', '.join(before)} could not be read, and counts no more: there are other files of {id_} now"
                self.said.append(f"{shown(student)}: {said}")
        for (student, id_), names in self.names.items():
            folder, more = self.out / student / id_, len(names) - MOST_NAMES
            cut = [*sorted(names)[:MOST_NAMES], *[f"{more} more"] * (more > 0)]
            refuse_links(self.out, folder)
            if self.memory.not_readable.get(student, {}).get(id_) != cut:
                self.memory.note(["not readable", student, id_, cut])
            folder.mkdir(parents=True, exist_ok=True)


def _is_opened(out: Path, student: str, assignment: str, memory: Memory) -> bool:
    """Return whether somebody has put an attempt there by hand, in place of what cannot be read."""
    files = (path for ending in ENDINGS for path in (out / student / assignment).glob(f"*{ending}"))
    return any(path.relative_to(out).as_posix() not in memory.earlier for path in files)
