"""Grade many submissions: worker processes, each a judge with a warm box of its own, and one writer (the caller)."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..box.names import BoxUnavailable, Device
from ..course import load_course
from ..errors import CourseFault
from ..result import Result
from ..submission import Submission
from .plan import Plan

if TYPE_CHECKING:
    from ..judge.grade import Judge


@dataclass(frozen=True)
class Graded:
    """One submission's result, and what failed in the grader itself meanwhile."""

    submission: Submission
    result: Result
    faults: tuple[str, ...] = ()


class WorkerLost(CourseFault):
    """A judge process ended. The text ends with the command to run next."""


def grade_all(plan: Plan, submissions: Sequence[Submission], jobs: int) -> Iterator[Graded]:
    """Results as they come. Raises what a worker's start raises (BoxUnavailable, CourseError, GraderFault)."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_start, initargs=(plan,)) as pool:
        try:
            yield from grade_with(pool, submissions)
        except (KeyboardInterrupt, GeneratorExit):
            for judge in multiprocessing.active_children():  # an attempt may have its 20 seconds still before it
                judge.kill()
            raise


def grade_with(pool: Executor, submissions: Sequence[Submission]) -> Iterator[Graded]:
    """Hand every submission to the pool."""
    futures: list[Future[Graded]] = [pool.submit(_grade, submission) for submission in submissions]
    try:
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        raise WorkerLost("a judge process ended before it was done. Next: run the same command again") from None
    finally:
        for future in futures:
            future.cancel()


@dataclass
class _Worker:
    """This process as a judge: started once, used for every submission that it is given."""

    resources: ExitStack
    judge: Judge | None = None
    problem: Exception | None = None


_worker = _Worker(ExitStack())


def _start(plan: Plan) -> None:
    """Become a judge. A failure waits for the first submission, whose caller can read it."""
    from ..box.level import open_box
    from ..box.proof import prove
    from ..judge.grade import Judge, Settings

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the caller decides
    try:
        _need(plan.device)
        course = load_course(plan.course)
        box = _worker.resources.enter_context(open_box(plan.level, course.limits.for_worker(), course.root))
        prove(box, course)
        settings = Settings(plan.secret, plan.seed, plan.device, plan.exercises)
        _worker.judge = _worker.resources.enter_context(Judge(course, box, settings))
    except Exception as error:
        _worker.problem = error


def _need(device: Device) -> None:
    """Raise BoxUnavailable where this machine has no such device."""
    import torch

    if device is Device.CUDA and not torch.cuda.is_available():
        raise BoxUnavailable("this machine has no CUDA device that torch can use. Next: course grade … --device cpu")


def _grade(submission: Submission) -> Graded:
    if _worker.problem is not None:
        raise _worker.problem
    assert _worker.judge is not None
    _worker.judge.faults.clear()
    result = _worker.judge.grade(submission)
    return Graded(submission, result, tuple(_worker.judge.faults))
