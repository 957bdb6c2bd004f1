"""When submissions were handed in: from nbgrader's timestamp.txt, or what `course collect` remembers.

A file's own time is never taken: copying, unpacking and mending change it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..course.dates import moment
from ..result import HandedIn
from . import Submission, Unreadable, read_text
from .lay_out import Memory, read_memory

TIMESTAMP = "timestamp.txt"
MARKS_LATE = ("Canvas",)  # what such a platform does not call late was in time


def handed_in(submitted: Path, submissions: Sequence[Submission]) -> dict[Submission, HandedIn]:
    """Return when each was handed in; who is not in it, nobody knows of."""
    memory = read_memory(submitted)
    times = {submission: _stamped(submission) or _remembered(submission, memory) for submission in submissions}
    return {submission: time for submission, time in times.items() if time is not None}


def _stamped(submission: Submission) -> HandedIn | None:
    """Read nbgrader's own file, which means UTC without a zone. None where it is missing or says no time."""
    path = submission.folder / TIMESTAMP
    if not os.path.isfile(path) or path.is_symlink():  # False in a folder that may not be entered
        return None
    try:
        return HandedIn(source=TIMESTAMP, time=moment(read_text(path, 1).strip(), "UTC"))
    except (Unreadable, ValueError, OverflowError):
        return None


def _remembered(submission: Submission, memory: Memory) -> HandedIn | None:
    """Return the latest time of the files that were collected, or what a platform says that marks what is late; else None."""
    start = f"{submission.student}/{submission.assignment.id}/"
    origins = [origin for path, origin in memory.files.items() if path.startswith(start)]
    times = [origin.handed_in for origin in origins]
    if origins and all(times):
        when = max(datetime.fromisoformat(time).astimezone(UTC) for time in times)
        return HandedIn(source=origins[0].platform, time=when)
    if late := next((origin for origin in origins if origin.late), None):
        return HandedIn(source=late.platform, late=True)
    marked = bool(origins) and all(o.platform in MARKS_LATE and o.late is not None for o in origins)
    return HandedIn(source=origins[0].platform) if marked else None
