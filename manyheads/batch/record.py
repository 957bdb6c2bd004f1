"""The one writer of a run: every result to its file, then to the gradebook, then to the journal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ..result import Result, write_result
from ..submission import Submission
from .journal import Journal
from .judge_process import Graded
from .merge import completed


class Book(Protocol):
    """A gradebook."""

    def write(self, result: Result) -> None:
        """Enter a result; again is no harm."""


@dataclass
class Record:
    """What this run writes. `partly`: only some exercises are graded, and what is on disk of the others stays."""

    folder: Path
    journal: Journal
    book: Book | None
    partly: bool
    faults: list[str] = field(default_factory=list)
    _keys: dict[Submission, str] = field(default_factory=dict)

    def known(self, submissions: Sequence[Submission], *, regrade: bool) -> Iterator[tuple[Submission, Result]]:
        """What is graded already and has not changed. To be asked before anything is added."""
        self._keys = {s: self.journal.key(s) for s in submissions}  # files may change while others are graded
        for submission, key in () if regrade else self._keys.items():
            result = self.journal.known(submission, key)
            if result is not None:
                if self.book is not None:  # an earlier run may have been stopped between the file and the gradebook
                    self.book.write(result)
                yield submission, result

    def add(self, graded: Graded) -> Result:
        """Write a result, and give it back as it was written. The journal comes last: a run that is stopped before it
        does this one again."""
        submission, result = graded.submission, graded.result
        if self.partly:
            result = completed(result, self.journal.on_disk(submission), submission.assignment)
        write_result(result, self.folder)
        if self.book is not None:
            self.book.write(result)
        if not graded.faults:
            self.journal.note(submission, self._keys[submission])
        self.faults += graded.faults
        return result
