"""Grade many submissions: worker processes, each a judge with a warm box of its own, and one writer (the caller)."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..box.names import BoxUnavailable, Device, Level
from ..course import load_course
from ..errors import CourseFault
from ..result import Result
from ..submission import Submission

if TYPE_CHECKING:
    from ..judge.grade import Judge


@dataclass(frozen=True)
class Plan:
    """All that a worker needs to become a judge."""

    course: Path
    secret: bytes
    level: Level = Level.NAMESPACES
    seed: int = 0
    device: Device = Device.CPU
    exercises: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graded:
    """One submission's result, and what failed in the grader itself meanwhile."""

    result: Result
    faults: tuple[str, ...] = ()


class WorkerLost(CourseFault):
    """A judge process ended. The text ends with the command to run next."""


def grade_all(plan: Plan, submissions: Sequence[Submission], jobs: int) -> Iterator[Graded]:
    """Results as they come. Raises what a worker's start raises (BoxUnavailable, CourseError, GraderFault)."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_start, initargs=(plan,)) as pool:
        yield from grade_with(pool, submissions)


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
    return Graded(result, tuple(_worker.judge.faults))
