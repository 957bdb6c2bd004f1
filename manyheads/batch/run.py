"""Grade many submissions with several judge processes, each with its own warm box. The caller writes the results."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice
from types import MappingProxyType

from ..submission import Submission
from .cpus import one_for_each, start_on_one
from .judge_process import LOST, Graded, WorkerLost, grade
from .plan import GradePlan

__all__ = ["Graded", "WorkerLost", "grade_all", "grade_with"]

Only = Mapping[Submission, tuple[str, ...]]
EVERYTHING: Only = MappingProxyType({})
AHEAD = 8  # submissions queued for each judge, so that it never waits for the writer
SECONDS = 1.0  # the longest wait before `room` is called again


def grade_all(
    plan: GradePlan, submissions: Sequence[Submission], jobs: int, only: Only = EVERYTHING
) -> Iterator[Graded]:
    """Yield results as they come. only: ids of exercises, by submission; all of those that are not in it.

    Raises what a worker's start raises (BoxUnavailable, CourseError, GraderFault)."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=start_on_one, initargs=(plan, one_for_each(jobs))) as pool:
        try:
            yield from grade_with(pool, (partial(grade, s, only.get(s, ())) for s in submissions), lambda: AHEAD * jobs)
        except (KeyboardInterrupt, GeneratorExit):
            # Kill the judges, because an attempt may still have 20 seconds. Pending futures then fail by themselves:
            # cancelling them would raise in the pool's own thread, which prints a traceback (Python 3.11).
            for judge in multiprocessing.active_children():
                judge.kill()
            raise
        except Exception:
            # Before Python 3.11.4 a pool is waited for without an end if nothing but cancelled futures is left in it
            # (python/cpython#94440): let it drop them itself.
            pool.shutdown(cancel_futures=True)
            raise


def grade_with(pool: Executor, calls: Iterable[Callable[[], Graded]], room: Callable[[], int]) -> Iterator[Graded]:
    """Execute the calls in the pool, and yield their results.

    room: returns how many calls the pool should currently have. Raises what a call raises, or WorkerLost, and then
    cancels pending calls. A caller that stops early has to cancel them itself.
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
