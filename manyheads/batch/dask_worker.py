"""What a dask worker does for `course grade --cluster`: it keeps one judge, warm, and hands it submissions.

Nothing of a student's runs in the worker's process: it reads files as data, and its judge, a process of its own, sends
attempts into its box.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import threading
from dataclasses import dataclass, field

from ..course import CourseError, load_course
from ..errors import CourseFault
from ..submission import Submission
from .journal import run_key, submission_key
from .judge_process import Graded, JudgeProcess, WorkerLost
from .plan import GradePlan


@dataclass(frozen=True)
class Order:
    """What the workers of one run are to grade with."""

    plan: GradePlan
    key: str  # of the course, the engine, versions, options and secret, as the machine that asks has them
    limit_kib: int  # the largest file that is read


@dataclass
class _Post:
    """This worker's judge, and the order that it was started for."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    order: Order | None = None
    judge: JudgeProcess | None = None

    def fill(self, order: Order) -> JudgeProcess:
        """The judge for this order: the one that is here, or a new one. Raises CourseFault."""
        if self.judge is None or self.order != order:
            self.clear()
            _check(order)
            self.judge, self.order = JudgeProcess(order.plan), order
        return self.judge

    def clear(self) -> None:
        """End the judge that is here."""
        if self.judge is not None:
            self.judge.close()
        self.judge = None


_post = _Post()


async def prepare(order: Order) -> None:
    """Become ready for an order: same files, same versions, and a box that the canary cannot leave. Raises CourseFault."""
    await asyncio.get_running_loop().run_in_executor(None, _prepare, order)


def _prepare(order: Order) -> None:
    try:
        with _post.lock:
            _post.fill(order)
    except CourseFault as fault:
        raise _from_here(fault) from None


def grade_here(order: Order, submission: Submission, key: str) -> Graded:
    """Grade a submission. `key`: of its files, as the machine that asks sees them. Raises CourseFault."""
    try:
        if submission_key(submission, order.key, order.limit_kib) != key:
            raise CourseFault(
                f"other files stand in {submission.folder} than on the machine that runs course grade. "
                "Next: share that folder with every worker; or the same command again, if it has just been changed"
            )
        with _post.lock:
            try:
                return _post.fill(order).grade(submission)
            except WorkerLost:  # killed by somebody, or for want of memory: once is no fault of ours
                _post.clear()
                return _post.fill(order).grade(submission)
    except CourseFault as fault:
        raise _from_here(fault) from None


def _check(order: Order) -> None:
    """Raise CourseFault where this worker would grade otherwise than the machine that asks."""
    if multiprocessing.current_process().daemon:
        raise CourseFault("its process has a nanny, and may start no judge. Next: dask worker … --no-nanny")
    try:
        course = load_course(order.plan.course)
    except CourseError:
        raise CourseFault(
            f"there is no course in {order.plan.course}. Next: share that folder with every worker"
        ) from None
    if run_key(course, order.plan) != order.key:
        raise CourseFault(
            "the course, the grader or the versions of what it stands on differ from those of the machine that runs course grade. "
            "Next: pip install -e '.[cluster]' -c constraints.txt, of the same checkout, on both, and share the course's folder"
        )


def _from_here(fault: CourseFault) -> CourseFault:
    """The same sentence, with the machine that it is about."""
    return CourseFault(f"on the worker at {socket.gethostname()}, {fault}")
