"""A process as a judge: started once, with a warm box of its own, used for every submission that it is given."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from ..box.names import BoxUnavailable, Device
from ..course import load_course
from ..errors import CourseFault
from ..result import Result
from ..submission import Submission
from .plan import GradePlan

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


@dataclass
class _Here:
    """This process."""

    box: ExitStack
    judge: Judge | None = None
    problem: Exception | None = None


_here = _Here(ExitStack())


def start(plan: GradePlan) -> None:
    """Become a judge. A failure waits for the first question, whose caller can read it."""
    from ..box.level import open_box
    from ..box.proof import prove
    from ..judge.grade import Judge, Settings

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the caller decides
    atexit.register(_close)
    try:
        _need(plan.device)
        course = load_course(plan.course)
        box = _here.box.enter_context(open_box(plan.level, course.limits.for_worker(plan.device), course.root))
        prove(box, course, plan.device)
        settings = Settings(plan.secret, plan.seed, plan.device, plan.exercises)
        _here.judge = Judge(course, box, settings)
    except Exception as error:
        _here.problem = error


def grade(submission: Submission) -> Graded:
    """Grade one submission here. Raises what this process's start raised."""
    if _here.problem is not None:
        raise _here.problem
    assert _here.judge is not None
    _here.judge.faults.clear()
    result = _here.judge.grade(submission)
    return Graded(submission, result, tuple(_here.judge.faults))


class JudgeProcess:
    """A judge in a process of its own, for a caller that may end at any moment: the judge and its box end with it."""

    def __init__(self, plan: GradePlan) -> None:
        """Start it. Raises what its start raises (BoxUnavailable, CourseError, GraderFault), or WorkerLost."""
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, plan), name="judge", daemon=True)
        with theirs:
            self._process.start()
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def grade(self, submission: Submission) -> Graded:
        """Raises WorkerLost where the process has ended."""
        try:
            self._line.send(submission)
        except OSError:
            raise WorkerLost(LOST) from None
        graded = self._answer()
        assert graded is not None
        return graded

    def close(self) -> None:
        """End it now, whatever it does."""
        self._line.close()
        self._process.terminate()
        self._process.join()

    def _answer(self) -> Graded | None:
        try:
            answer = self._line.recv()
        except (EOFError, OSError):
            raise WorkerLost(LOST) from None
        if isinstance(answer, Exception):
            raise answer
        assert answer is None or isinstance(answer, Graded)
        return answer


LOST = "a judge process ended before it was done. Next: run the same command again"


def _serve(line: Connection, plan: GradePlan) -> None:
    """Answer one submission after another, until nobody is left who asks."""
    signal.signal(signal.SIGTERM, _leave)
    start(plan)
    try:
        line.send(_here.problem)
        while True:
            submission = line.recv()
            try:
                line.send(grade(submission))
            except Exception as error:
                line.send(error)
    except (EOFError, OSError):
        return


def _leave(number: int, frame: object) -> None:
    """End now, in the middle of an attempt too: the attempt ends with its box."""
    _here.box.close()
    os._exit(0)


def _close() -> None:
    _here.box.close()


def _need(device: Device) -> None:
    """Raise BoxUnavailable where this machine has no such device."""
    import torch

    if device is Device.CUDA and not torch.cuda.is_available():
        raise BoxUnavailable("this machine has no CUDA device that torch can use. Next: course grade … --device cpu")
