"""End a process with its parent, or with its budget, and keep to CPUs.

Imported by whatever starts processes, so it imports nothing of the judge's.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

CPU_SECONDS = 120.0  # that a judge may compute for one attempt: sixty times what the slowest of the course takes
STDERR = 2  # the descriptor, because sys.stderr may have been replaced


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


@contextmanager
def cpu_budget() -> Iterator[None]:
    """End this process where the block computes for longer than CPU_SECONDS, with the traceback of every thread.

    What it waits for does not count. The kernel counts, so nothing that runs here can delay it. Within another block, or where
    the system has no such timer, this one does nothing.
    """
    if not hasattr(signal, "setitimer") or signal.getitimer(signal.ITIMER_PROF)[0]:
        yield
        return
    faulthandler.register(signal.SIGPROF, STDERR, chain=True)  # and then the signal ends the process
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


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
