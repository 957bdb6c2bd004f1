"""The only writer of a run: it writes each result to its file, then to the gradebook, then to the journal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ..course import Assignment, Exercise
from ..errors import CourseFault
from ..result import HandedIn, Result, result_path, with_not_readable, with_total, write_result
from ..submission import Submission
from .changed_points import note_points
from .journal import Journal
from .judge_process import Graded

STATED = ("device", "isolation", "seed")


def merged(
    result: Result, before: Result | None, assignment: Assignment, kept: Collection[str] | None = None
) -> Result:
    """Return the result, with missing exercises taken from an earlier result, in the course's order.

    Nothing is taken from a result with another device, isolation level or seed, because a result states one of each.
    kept: only these are taken; None: all that the course has.
    """
    if before is None or any(getattr(before, name) != getattr(result, name) for name in STATED):
        return result
    earlier = [e for e in before.exercises if kept is None or e.id in kept]
    found = {e.id: e for e in (*earlier, *result.exercises)}
    return with_total(result, (found[e.id] for e in assignment.exercises if e.id in found))


class Gradebook(Protocol):
    """A gradebook."""

    def write(self, result: Result) -> None:
        """Enter a result. Entering it again changes nothing."""


@dataclass
class Record:
    """Writes the results of a run.

    chosen: ids of the exercises that are graded, the others being kept from disk; empty: all.
    handed_in: when each submission was handed in; who is not in it, nobody knows of.
    not_readable: names of what was handed in and cannot be read.
    counted: makes what a gradebook gets of what is written: a result as it counts.
    todo: the ids of what has to be graded, by submission. `known` fills it.
    """

    folder: Path
    journal: Journal
    book: Gradebook | None
    chosen: Collection[str]
    handed_in: Mapping[Submission, HandedIn] = field(default_factory=dict)
    counted: Callable[[Result], Result] = lambda result: result
    not_readable: Mapping[Submission, tuple[str, ...]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    todo: dict[Submission, tuple[str, ...]] = field(default_factory=dict)
    _keys: dict[Submission, dict[str, str]] = field(default_factory=dict)

    @property
    def in_part(self) -> int:
        """How many submissions have something to grade, and something that holds good."""
        return sum(len(todo) < len(self._chosen(submission)) for submission, todo in self.todo.items())

    def known(self, submissions: Sequence[Submission], *, again: bool) -> Iterator[tuple[Submission, Result]]:
        """Yield the results that are graded already and have not changed. Go through all of them before `add`.

        again: none holds good, and all are graded again. Raises CourseFault where other exercises' results would be lost.
        """
        for submission in submissions:
            before, chosen = self.journal.on_disk(submission), self._chosen(submission)
            if before is None and len(chosen) < len(submission.assignment.exercises):
                self._refuse_to_lose(submission)
            there = {} if again or before is None else {e.id: e for e in before.exercises}
            keys = {e.id: self.journal.keys.of(submission, e) for e in chosen}  # now: files may change meanwhile
            good = {e.id for e in chosen if self.journal.holds(submission, e, keys[e.id], there.get(e.id))}
            todo = {id_: key for id_, key in keys.items() if id_ not in good}
            if todo or before is None:
                self.todo[submission], self._keys[submission] = tuple(todo), todo
                continue
            result = self._dated(submission, merged(before, before, submission.assignment))
            if result != before:
                self._replace(before, result)
            if self.book is not None:  # an earlier run may have stopped between writing file and gradebook
                self.book.write(self.counted(result))
            yield submission, result

    def add(self, graded: Graded) -> Result:
        """Write a result. Returns it as written. The journal comes last, so that an interrupted run repeats it."""
        submission, todo = graded.submission, self.todo[graded.submission]
        kept = None if self.chosen else {e.id for e in self._chosen(submission)}.difference(todo)
        before = self.journal.on_disk(submission)
        result = self._dated(submission, merged(graded.result, before, submission.assignment, kept))
        self._replace(before, result)
        if self.book is not None:
            self.book.write(self.counted(result))
        self.journal.note(submission, self._keys[submission], result)
        self.faults += graded.faults
        return result

    def _replace(self, before: Result | None, result: Result) -> None:
        if before is not None:
            note_points(self.folder, self.counted(before), self.counted(result))
        write_result(result, self.folder)

    def _refuse_to_lose(self, submission: Submission) -> None:
        path = result_path(self.folder, submission.student, submission.assignment.id)
        if path.exists():
            said = f"{path} is not a result, or one of another version: what it holds of other exercises cannot stay"
            raise CourseFault(f"{said}. Next: course grade without --exercise or --only")

    def _chosen(self, submission: Submission) -> list[Exercise]:
        return [e for e in submission.assignment.exercises if not self.chosen or e.id in self.chosen]

    def _dated(self, submission: Submission, result: Result) -> Result:
        dated = result.model_copy(update={"handed_in": self.handed_in.get(submission)})
        return with_not_readable(dated, self.not_readable.get(submission, ()))
