"""Whose points a run changed: noted beside the results as the run goes, for its end and for the class page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from ..result import Result, total_of
from ..whole import naming

# No student's folder begins with a dot. A stopped run leaves the second to the next one.
NAME, UNFINISHED = ".points-changed", ".points-changing"


class ChangedPoints(NamedTuple):
    """The points of a result, and those of the result that it replaced. None: not graded."""

    student: str
    assignment: str
    before: float | None
    after: float | None


def note_points(folder: Path, before: Result, after: Result) -> None:
    """Note a result that replaces another with other points, in the exercises that both have."""
    both = {each.id for each in before.exercises}.intersection(each.id for each in after.exercises)
    old, new = (total_of(e.score for e in r.exercises if e.id in both and not e.excused) for r in (before, after))
    is_by_hand = any(each.rule == "score" for each in after.adjustments)  # a total, which no run changes
    if old != new and not is_by_hand:
        path = folder / UNFINISHED
        with naming(path), path.open("a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps([after.student, after.assignment, old, new])}\n")  # \n ends an incomplete line


def finish_changed_points(folder: Path) -> list[ChangedPoints]:
    """Put what this run has noted in place of what the last one did, and return it."""
    if (folder / UNFINISHED).exists():
        (folder / UNFINISHED).replace(folder / NAME)
    else:
        (folder / NAME).unlink(missing_ok=True)
    return read_changed_points(folder)


def read_changed_points(folder: Path) -> list[ChangedPoints]:
    """Return whose points the last run changed, ordered by student."""
    path, points = folder / NAME, dict[tuple[str, str], tuple[float | None, float | None]]()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        try:
            student, assignment, before, after = json.loads(line)
        except (ValueError, TypeError):
            continue
        before, _ = points.get((student, assignment), (before, after))  # noted twice where the run was stopped
        points[student, assignment] = before, after
    return [ChangedPoints(*key, *pair) for key, pair in sorted(points.items()) if pair[0] != pair[1]]
