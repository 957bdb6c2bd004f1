"""What was handed in and cannot be read: of whom, of which assignments, and what they are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..course import Assignment, Course
from . import ENDINGS, Submission, closed_in, is_student, shown
from .archives import own_name
from .lay_out import Memory, read_memory, refuse_links
from .platforms import HandIn, unwrapped
from .which_exercise import Exercises, place_of

MOST_NAMES = 10  # of one student's files, in what is remembered and said


@dataclass
class Unread:
    """What one run of `course collect` could not read. names: of files, by student and assignment. memory: of earlier runs."""

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
            reason, _, next_ = each.member.closed.partition(". Next: ")
            told = f"{shown(student)}: handed in, not readable: {where}: {path} {reason}"
            if not ids:
                left_out += 1
            elif all(_is_opened(self.out, student, id_, self.memory) for id_ in ids):
                self.said.append(f"{told}; what you have laid into {shown(student)}/{ids[0]}/ is graded in its place")
            else:
                into = "/".join([str(self.out / student), *ids[: len(ids) == 1]])
                next_ = f"Next: open it by hand, and put the files into {into}/; or ask for the files"
                self.not_taken.append(f"{told}. {next_}")
        return left_out

    def record(self, laid: Collection[tuple[str, str]]) -> None:
        """Keep it for whoever grades, and forget what has been handed in again. laid: of whom there are files, by assignment."""
        for student, id_ in sorted(laid):
            before = self.memory.not_readable.get(student, {}).get(id_)
            if before and (student, id_) not in self.names:
                self.memory.note(["not readable", student, id_, []])
                said = f"{', '.join(before)} could not be read, and counts no more: there are other files of {id_} now"
                self.said.append(f"{shown(student)}: {said}")
        for (student, id_), names in self.names.items():
            folder, cut = self.out / student / id_, sorted(names)[:MOST_NAMES]
            cut += [f"{len(names) - MOST_NAMES} more"] * (len(names) > MOST_NAMES)
            refuse_links(self.out, folder)
            if self.memory.not_readable.get(student, {}).get(id_) != cut:
                self.memory.note(["not readable", student, id_, cut])
            folder.mkdir(parents=True, exist_ok=True)

    def _assignments(self, hand_in: HandIn, where: str, beside: Collection[Assignment]) -> Sequence[Assignment]:
        """Return those that the file may be of: by its name, a folder's, what else was handed in there; else all.

        None where it is of another one than is asked for.
        """
        course, only = self.exercises.course, self.exercises.only
        exercise = self.exercises.named(unwrapped(own_name(hand_in.name)))
        parts = {unwrapped(part).casefold().replace("-", "_") for part in (where, hand_in.name, *hand_in.member.path)}
        named = [a for a in course.assignments if a.id in parts or (exercise and place_of(exercise)[0] == a)]
        if only is not None:
            return [only] if only in named or not named else []
        return named or [a for a in course.assignments if a in beside] or course.assignments


def _is_opened(out: Path, student: str, assignment: str, memory: Memory) -> bool:
    """Return whether somebody has put an attempt there by hand, in place of what cannot be read."""
    files = (path for ending in ENDINGS for path in (out / student / assignment).glob(f"*{ending}"))
    return any(path.relative_to(out).as_posix() not in memory.earlier for path in files)


def not_readable(
    course: Course, submitted: Path, submissions: Sequence[Submission]
) -> dict[Submission, tuple[str, ...]]:
    """Return the names of what could not be read, and nobody has opened since, or may not be read. Raises CourseFault."""
    memory, found = read_memory(submitted), {}
    for each in submissions:
        folder = submitted / each.student
        own = (folder, each.folder)
        closed = [path for path in closed_in(course, folder) if path in own or path.parent == each.folder]
        if closed:
            found[each] = tuple(shown(str(path.relative_to(submitted))) for path in closed)
    for student, kept in memory.not_readable.items():
        for assignment in course.assignments if is_student(student) else ():
            names = kept.get(assignment.id, [])
            if names and not _is_opened(submitted, student, assignment.id, memory):
                submission = Submission(student, assignment, submitted / student / assignment.id)
                found[submission] = tuple(map(shown, names))
    return found
