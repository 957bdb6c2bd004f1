"""Try edits until one makes every check pass: its line is where the attempt goes wrong.

The search is bounded by counts, and by time. Where the time runs out nothing is told, so that a
slower machine may only find nothing, and never something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress

from ..result import MOST_LINES
from .code_parts import Edit

TOGETHER = 16  # edits that are looked at together


class OutOfTime(Exception):
    """The time for a search is over, or an edited attempt did not answer in time."""


@dataclass(frozen=True)
class Bounds:
    """How many edits are tried, how many of them are put to every check, and how many seconds all
    of it may take.
    """

    edits: int = 1500
    proofs: int = 10
    seconds: float = 2.0


def find_lines(
    edits: Sequence[Edit],
    look: Callable[[Sequence[str]], list[bool]],
    passes: Callable[[str], bool],
    bounds: Bounds,
) -> tuple[Edit, ...]:
    """Return an edit for each line that is proved, in the order of lines; empty where none is, or
    more than MOST_LINES are.

    After the first proof, only edits of its kind on other lines are tried.

    Args:
        edits: the likely ones first.
        look: says of each text whether it is worth proving: a quick look at what failed first.
        passes: says whether every check passes, in a process of its own that has run nothing else.
        bounds: of the counts. Its seconds are kept by `look` and `passes`, which raise OutOfTime.
    """
    proved: dict[int, Edit] = {}
    proofs = 0

    def is_open(edit: Edit) -> bool:
        return edit.line not in proved and all(
            edit.category == proved_edit.category for proved_edit in proved.values()
        )

    for start in range(0, min(len(edits), bounds.edits), TOGETHER):
        some = [e for e in edits[start : min(start + TOGETHER, bounds.edits)] if is_open(e)]
        for edit in filter(is_open, compress(some, look([e.after for e in some]))):
            proofs += 1
            if proofs > bounds.proofs:
                return ()
            if passes(edit.after):
                proved[edit.line] = edit
            if len(proved) > MOST_LINES:
                return ()
    return tuple(proved[line] for line in sorted(proved))
