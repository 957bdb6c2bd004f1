"""The only writer of a run: it writes each result to its file, then to the gradebook, then to the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ..result import HandedIn, Result, write_result
from ..submission import Submission
from .journal import Journal
from .judge_process import Graded
from .merge import merged


class Gradebook(Protocol):
    """A gradebook."""

    def write(self, result: Result) -> None:
        """Enter a result. Entering it again changes nothing."""


@dataclass
class Record:
    """Writes the results of a run.

    only_some: only some exercises are graded; the others are kept from disk.
    handed_in: when each submission was handed in; who is not in it, nobody knows of.
    counted: makes what a gradebook gets of what is written: a result as it counts.
    """

    folder: Path
    journal: Journal
    book: Gradebook | None
    only_some: bool
    handed_in: Mapping[Submission, HandedIn] = field(default_factory=dict)
    counted: Callable[[Result], Result] = lambda result: result
    faults: list[str] = field(default_factory=list)
    _keys: dict[Submission, str] = field(default_factory=dict)

    def known(self, submissions: Sequence[Submission], *, regrade: bool) -> Iterator[tuple[Submission, Result]]:
        """The results that are graded already and have not changed. Call this before `add`."""
        self._keys = {
            s: self.journal.key(s) for s in submissions
        }  # computed now, because files may change during the run
        for submission, key in () if regrade else self._keys.items():
            result = self.journal.known(submission, key)
            if result is not None:
                dated = self._dated(submission, result)
                if dated != result:
                    write_result(dated, self.folder)
                if self.book is not None:  # an earlier run may have stopped between writing file and gradebook
                    self.book.write(self.counted(dated))
                yield submission, dated

    def add(self, graded: Graded) -> Result:
        """Write a result. Returns it as written. The journal comes last, so that an interrupted run repeats the submission."""
        submission, result = graded.submission, self._dated(graded.submission, graded.result)
        if self.only_some:
            result = merged(result, self.journal.on_disk(submission), submission.assignment)
        write_result(result, self.folder)
        if self.book is not None:
            self.book.write(self.counted(result))
        if not graded.faults:
            self.journal.note(submission, self._keys[submission])
        self.faults += graded.faults
        return result

    def _dated(self, submission: Submission, result: Result) -> Result:
        return result.model_copy(update={"handed_in": self.handed_in.get(submission)})
