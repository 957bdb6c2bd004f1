"""End a process with its parent, and keep to CPUs. Imported by whatever starts processes, so it imports nothing of the judge's."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Sequence


def end_with_parent() -> None:
    """End this process at once when its parent has ended, in whatever way. Its box then ends, too (manyheads/box/reaper.py).

    A judge that is grading does not read from the pipe that brings it work, so it would not see the end of it for a while.
    """
    parent = multiprocessing.parent_process()
    if parent is None:  # this process is the command itself
        return

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, name="orphan", daemon=True).start()


def one_for_each(jobs: int) -> Sequence[int | None]:
    """Return a CPU for each judge if this process may use exactly `jobs` CPUs; else None, for the kernel schedules better.

    A judge and its box alternate: one computes while the other waits. On the same CPU each finds in the cache what the
    other has just written, and no other CPU has to wake up. That saves a sixteenth of the CPU time of a right submission.
    """
    cpus = _cpus()
    return cpus if len(cpus) == jobs else [None] * jobs


def usable() -> int:
    """Return how many CPUs this process may use."""
    return len(_cpus()) or os.cpu_count() or 1


def _cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []  # no other system tells
