"""Grade many submissions with several judge processes, each with its own warm box. The caller writes the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import islice
from queue import SimpleQueue
from types import MappingProxyType

from ..submission import Submission
from .cpus import one_for_each
from .judge_process import Graded, SteadyJudge, WorkerLost
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

    Raises what a judge's start raises (BoxUnavailable, CourseError, GraderFault).
    """
    judges = [SteadyJudge(plan, cpu) for cpu in one_for_each(jobs)]
    free = SimpleQueue[SteadyJudge]()
    for judge in judges:
        free.put(judge)

    def grade(submission: Submission) -> Graded:
        judge = free.get()  # there are as many threads as judges
        try:
            return judge.grade(submission, only.get(submission, ()))
        finally:
            free.put(judge)

    with ThreadPoolExecutor(jobs) as threads:
        try:
            yield from grade_with(threads, (partial(grade, each) for each in submissions), lambda: AHEAD * jobs)
        finally:  # whatever is not done now is given up, because an attempt may still have 20 seconds
            threads.shutdown(wait=False, cancel_futures=True)
            for judge in judges:
                judge.close()


def grade_with(pool: Executor, calls: Iterable[Callable[[], Graded]], room: Callable[[], int]) -> Iterator[Graded]:
    """Execute the calls in the pool, and yield their results.

    room: returns how many calls the pool should currently have. Raises what a call raises, and then cancels pending
    calls. A caller that stops early has to cancel them itself.
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
    except Exception:
        for future in pending:
            future.cancel()
        raise
