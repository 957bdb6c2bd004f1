"""Tie processes together: a judge ends with its parent and with its dask worker, and stays on its CPU."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

# End a judge when the process that started it has ended, in whatever way.
#
# A judge that is grading does not read from the pipe that brings it work, so it would not see the end of it for a
# while.


def end_with_parent() -> None:
    """End this process at once when its parent has ended. Its box then ends, too (manyheads/box/reaper.py)."""
    if multiprocessing.parent_process() is not None:  # None where this process is the command itself
        threading.Thread(target=_end_after_parent, name="orphan", daemon=True).start()


def _end_after_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


# Bind each judge to a CPU.
#
# A judge and its box alternate: one computes while the other waits. On the same CPU each finds in the cache what the
# other has just written, and no other CPU has to wake up. That saves a sixteenth of the CPU time of a right
# submission.


def one_for_each(jobs: int) -> Sequence[int | None]:
    """Return a CPU for each judge if this process may use exactly `jobs` CPUs; else None, for the kernel schedules better."""
    ours = _ours()
    return ours if len(ours) == jobs else [None] * jobs


def usable() -> int:
    """Return how many CPUs this process may use."""
    return len(_ours()) or os.cpu_count() or 1


def _ours() -> list[int]:
    """Return the CPUs that this process may use, by their numbers; none where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []


# End a dask worker's judge as soon as the worker is told to end.
#
# A worker that is told to end, or whose scheduler has gone, waits half a minute for the submission that it grades. Its
# result could reach nobody any more, or another worker grades it.

if TYPE_CHECKING:
    from distributed import Worker

NAME = "manyheads-judge"
JUDGE = "judge"  # the name of a judge's process


async def call_at_the_end_of(worker: Worker, end: Callable[[], None]) -> None:
    """Have this worker call `end` when it begins to close. Does nothing if that has been asked before."""
    from distributed.diagnostics.plugin import WorkerPlugin

    class AtTheEnd(WorkerPlugin):
        name = NAME

        def teardown(self, worker: Worker) -> None:
            end()

    if NAME not in worker.plugins:
        await worker.plugin_add(AtTheEnd())


def kill_judges() -> None:
    """Kill every judge of this process, also one that is only starting. Their boxes end with them."""
    for child in multiprocessing.active_children():
        if child.name == JUDGE:
            child.kill()
