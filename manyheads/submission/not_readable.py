"""What was handed in and cannot be read: `course collect` notes whose it is and of which assignments, for whoever grades."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..course import Assignment
from . import ENDINGS, shown
from .archives import own_name
from .lay_out import Memory, refuse_links
from .platforms import HandIn, unwrapped
from .which_exercise import Exercises, place_of

MOST_NAMES = 10  # of one student's files, in what is remembered and said


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
            elif all(is_opened(self.out, student, id_, self.memory) for id_ in ids):
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


def is_opened(out: Path, student: str, assignment: str, memory: Memory) -> bool:
    """Return whether somebody has put an attempt there by hand, in place of what cannot be read."""
    files = (path for ending in ENDINGS for path in (out / student / assignment).glob(f"*{ending}"))
    return any(path.relative_to(out).as_posix() not in memory.earlier for path in files)
