"""End a dask worker's judge as soon as the worker is told to end.

A worker that is told to end, or whose scheduler has gone, waits half a minute for the submission that it grades. Its
result could reach nobody any more, or another worker grades it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import TYPE_CHECKING

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
