"""Try edits until one makes every check pass: its line is where the attempt goes wrong.

The search is bounded by counts, and by time. Where the time runs out nothing is told, so that a slower machine may only
find nothing, and never something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..result import MOST_LINES
from .edit_text import Edit

TOGETHER = 16  # edits that are looked at together


class OutOfTime(Exception):
    """The time for a search is over, or an edited attempt did not answer in time."""


class Trial(Protocol):
    """What edited attempts are put to. Both raise OutOfTime."""

    def look(self, texts: Sequence[str]) -> list[bool]:
        """Return whether each is worth proving: a quick look at what failed first."""

    def passes(self, text: str) -> bool:
        """Return whether every check passes, in a process of its own that has run nothing else."""


@dataclass(frozen=True)
class Bounds:
    """How many edits are tried, how many of them are put to every check, and how many seconds all of it may take."""

    edits: int = 1500
    proofs: int = 10
    seconds: float = 2.0


def find_lines(edits: Sequence[Edit], trial: Trial, bounds: Bounds) -> tuple[Edit, ...]:
    """Return an edit for each line that is proved, in the order of lines; empty where none is, or more than MOST_LINES are.

    After the first proof, only edits of its kind on other lines are tried.
    """
    proved: dict[int, Edit] = {}
    kind, proofs = "", 0
    try:
        for start in range(0, min(len(edits), bounds.edits), TOGETHER):
            some = edits[start : min(start + TOGETHER, bounds.edits)]
            some = [e for e in some if e.line not in proved and kind in ("", e.kind)]
            for edit, may_pass in zip(some, trial.look([e.after for e in some]), strict=True):
                if not may_pass or edit.line in proved or kind not in ("", edit.kind):
                    continue
                proofs += 1
                if proofs > bounds.proofs:
                    return ()
                if trial.passes(edit.after):
                    kind, proved[edit.line] = edit.kind, edit
                if len(proved) > MOST_LINES:
                    return ()
    except OutOfTime:
        return ()
    return tuple(proved[line] for line in sorted(proved))
