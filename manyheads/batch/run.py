"""Grade many submissions: worker processes, each a judge with a warm box of its own, and one writer (the caller)."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice

from ..submission import Submission
from .cpus import one_for_each, start_on_one
from .judge_process import LOST, Graded, WorkerLost, grade
from .plan import GradePlan

__all__ = ["Graded", "WorkerLost", "grade_all", "grade_with"]

AHEAD = 8  # submissions handed to each judge before it has done with the first: it never waits for the writer
SECONDS = 1.0  # between two looks at how many judges there are


def grade_all(plan: GradePlan, submissions: Sequence[Submission], jobs: int) -> Iterator[Graded]:
    """Results as they come. Raises what a worker's start raises (BoxUnavailable, CourseError, GraderFault)."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=start_on_one, initargs=(plan, one_for_each(jobs))) as pool:
        try:
            yield from grade_with(pool, (partial(grade, s) for s in submissions), lambda: AHEAD * jobs)
        except (KeyboardInterrupt, GeneratorExit):
            # An attempt may have its 20 seconds still before it. What waits then fails by itself: a future that was
            # cancelled would break the pool's own thread, which says so on the screen (Python 3.11).
            for judge in multiprocessing.active_children():
                judge.kill()
            raise


def grade_with(pool: Executor, calls: Iterable[Callable[[], Graded]], room: Callable[[], int]) -> Iterator[Graded]:
    """Have every call made by the pool, and pass on what comes back.

    `room`: how many calls the pool should have at once, now. Raises what a call raises, and WorkerLost; what waits is
    given up then. A caller that stops half-way has to do that itself.
    """
    waiting, pending = iter(calls), set[Future[Graded]]()
    try:
        while True:
            pending |= {pool.submit(call) for call in islice(waiting, max(0, room() - len(pending)))}
            if not pending:
                return
            done, pending = wait(pending, SECONDS, FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool:
        raise WorkerLost(LOST) from None
    except Exception:
        for future in pending:
            future.cancel()
        raise
