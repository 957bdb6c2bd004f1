"""Judge processes: each is started once, with its own warm box, and grades many submissions."""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import signal
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from ..box.names import BoxUnavailable, Device
from ..course import load_course
from ..errors import CourseFault
from ..result import Result
from ..submission import Submission
from .orphan import end_with_parent
from .plan import GradePlan
from .worker_end import JUDGE

if TYPE_CHECKING:
    from ..judge.grade import Judge


@dataclass(frozen=True)
class Graded:
    """One submission's result, and the faults of the grader itself during grading."""

    submission: Submission
    result: Result
    faults: tuple[str, ...] = ()


class WorkerLost(CourseFault):
    """A judge process ended. The text ends with the command to run next."""


@dataclass
class _ProcessState:
    """The judge of this process, or the exception that prevented it."""

    box: ExitStack
    judge: Judge | None = None
    problem: Exception | None = None
    graded: int = 0


_state = _ProcessState(ExitStack())


def start(plan: GradePlan) -> None:
    """Make this process a judge. An exception is stored, and raised by the first `grade`, whose caller can handle it."""
    end_with_parent()  # before the slow imports
    gc.disable()  # collections would find nothing while modules are imported, and take a fifth of that time
    from ..box.level import open_box
    from ..box.proof import prove
    from ..judge.grade import Judge, Settings

    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole process group, but only the caller should react
    atexit.register(_close)
    try:
        _need(plan.device)
        course = load_course(plan.course)
        box = _state.box.enter_context(open_box(plan.level, course.limits.for_worker(plan.device), course.root))
        prove(box, course, plan.device)
        settings = Settings(plan.secret, plan.seed, plan.device, plan.exercises, lines=plan.lines)
        _state.judge = Judge(course, box, settings)
    except Exception as error:
        _state.problem = error
    gc.freeze()  # what was imported stays until the end
    gc.enable()


def grade(submission: Submission, only: Collection[str] = ()) -> Graded:
    """Grade one submission in this process. only: ids of exercises; empty: all. Raises what `start` stored."""
    if _state.problem is not None:
        raise _state.problem
    assert _state.judge is not None
    _state.judge.faults.clear()
    result = _state.judge.grade(submission, only)
    _state.graded += 1
    if _state.graded.bit_count() == 1:
        _keep_what_there_is()
    return Graded(submission, result, tuple(_state.judge.faults))


def _keep_what_there_is() -> None:
    """Tell the garbage collector that what lives now stays: banks, tables, what is remembered of attempts.

    It would look at all of it again and again, and find nothing: an eighth of a judge's CPU time. After the first submission,
    the second, the fourth, the eighth and so on, because more and more is remembered.
    """
    gc.collect()
    gc.freeze()


class JudgeProcess:
    """A judge in a separate process, which ends with its box when the caller ends."""

    def __init__(self, plan: GradePlan) -> None:
        """Start the process. Raises what `start` raises there (BoxUnavailable, CourseError, GraderFault), or WorkerLost."""
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, plan), name=JUDGE, daemon=True)
        with theirs:
            self._process.start()
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def grade(self, submission: Submission, only: Collection[str] = ()) -> Graded:
        """Grade a submission. only: ids of exercises; empty: all. Raises WorkerLost if the process has ended."""
        try:
            self._line.send((submission, tuple(only)))
        except OSError:
            raise WorkerLost(LOST) from None
        graded = self._answer()
        assert graded is not None
        return graded

    def close(self) -> None:
        """End the process now, whatever it does."""
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
    """Grade one submission after another, until the caller closes the pipe."""
    signal.signal(signal.SIGTERM, _terminate)
    start(plan)
    try:
        line.send(_state.problem)
        while True:
            submission, only = line.recv()
            try:
                line.send(grade(submission, only))
            except Exception as error:
                line.send(error)
    except (EOFError, OSError):
        return


def _terminate(number: int, frame: object) -> None:
    """End this process now, also during an attempt, which ends with its box."""
    _state.box.close()
    os._exit(0)


def _close() -> None:
    _state.box.close()


def _need(device: Device) -> None:
    """Raise BoxUnavailable if this machine does not have the device."""
    import torch

    if device is Device.CUDA and not torch.cuda.is_available():
        raise BoxUnavailable("this machine has no CUDA device that torch can use. Next: course grade … --device cpu")
