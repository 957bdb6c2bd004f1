"""Try edits until one makes every check pass: its line is where the attempt goes wrong.

The search is bounded by counts, and by time. Where the time runs out nothing is told, so that a slower machine may only
find nothing, and never something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from .text import Edit

MOST_LINES = 2  # where more lines than these could be mended, none of them is told


class OutOfTime(Exception):
    """The time for a search is over, or an edited attempt did not answer in time."""


class Trial(Protocol):
    """What an edited attempt is put to. Both raise OutOfTime."""

    def may_pass(self, source: str) -> bool:
        """Whether it is worth proving: a quick look at what failed first."""

    def passes(self, source: str) -> bool:
        """Whether every check passes, in a process of its own that has run nothing else."""


@dataclass(frozen=True)
class Bounds:
    """How many edits are tried, how many of them are put to every check, and how many seconds all of it may take."""

    edits: int = 800
    proofs: int = 10
    seconds: float = 2.0


def find_lines(edits: Sequence[Edit], trial: Trial, bounds: Bounds, in_time: Callable[[], bool]) -> tuple[Edit, ...]:
    """An edit for each line that is proved, in the order of lines; empty where none is, or more than MOST_LINES are.

    After the first proof, only edits of its kind on other lines are tried.
    """
    proved: dict[int, Edit] = {}
    kind, proofs = "", 0
    try:
        for edit in islice(edits, bounds.edits):
            if edit.line in proved or (kind and edit.kind != kind):
                continue
            if not in_time():
                return ()
            if not trial.may_pass(edit.after):
                continue
            if proofs == bounds.proofs:
                return ()
            proofs += 1
            if trial.passes(edit.after):
                kind, proved[edit.line] = edit.kind, edit
                if len(proved) > MOST_LINES:
                    return ()
    except OutOfTime:
        return ()
    return tuple(proved[line] for line in sorted(proved))
