"""Judge processes: each is started once, with its own warm box, and grades many submissions."""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from ..box.names import BoxUnavailable, Device, Level
from ..course import load_course
from ..errors import CourseFault
from ..result import Result, with_total
from ..submission import Submission
from .process_ties import JUDGE, end_with_parent

# The plan of a grading run: everything that a worker needs to become a judge.


@dataclass(frozen=True)
class GradePlan:
    """The options of a grading run.

    seed: of everybody's inputs. It is 0 where each student has a run of their own (Gradescope, nbgrader's commands), so that
    the same code has the same points in all of them. The run of a pull request draws from a secret of its own.
    """

    course: Path
    secret: bytes = field(repr=False)  # not in the repr, which dask writes to its logs
    level: Level = Level.NAMESPACES
    seed: int = 0
    device: Device = Device.CPU
    exercises: tuple[str, ...] = ()  # ids; empty: all
    lines: bool = True  # whether to search for the line that is wrong


if TYPE_CHECKING:
    from .grade_submission import Judge


MEMORY_MIB = 4096  # that a judge may have for its own data: seven times what the course's own class takes
CLOSE_SECONDS = 5.0  # that a judge has to end its box, before it is killed


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
    from .grade_submission import Judge, Settings
    from .isolation_proof import prove

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
        _state.judge.demand_points()  # here, because whatever grades anybody begins here
        _bound_memory(MEMORY_MIB + course.limits.memory_mib)
    except Exception as error:
        _state.problem = error
    gc.freeze()  # what was imported stays until the end
    gc.enable()


def _bound_memory(mib: int) -> None:
    """Bound what this process may write to, so that a text cannot make it take the machine's memory.

    What asks for more fails here: one exercise is not graded, and the run goes on. The boxes that it starts inherit the bound,
    which is above their own.
    """
    try:
        import resource
    except ImportError:  # Windows, where nobody grades
        return
    most = mib * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def grade(submission: Submission, only: Collection[str] = (), given_up: Collection[str] = ()) -> Graded:
    """Grade one submission in this process. Raises what `start` stored.

    only: ids of exercises; empty: all. given_up: ids of those that are not graded.
    """
    if _state.problem is not None:
        raise _state.problem
    assert _state.judge is not None
    _state.judge.faults.clear()
    result = _state.judge.grade(submission, only, given_up)
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

    def __init__(self, plan: GradePlan, cpu: int | None = None) -> None:
        """Start the process, and do not wait for it. cpu: the only one that it may use."""
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, plan, cpu), name=JUDGE, daemon=True)
        self._is_ready = False
        self._closing = threading.Lock()
        with theirs:
            self._process.start()

    def wait(self) -> None:
        """Wait until it can grade. Raises what `start` raises there (BoxUnavailable, GraderFault, …), or WorkerLost."""
        if not self._is_ready:
            self._answer()
            self._is_ready = True

    def grade(self, submission: Submission, only: Collection[str] = (), given_up: Collection[str] = ()) -> Graded:
        """Grade a submission. Raises what `wait` raises, and WorkerLost if the process has ended.

        only: ids of exercises; empty: all. given_up: ids of those that are not graded.
        """
        self.wait()
        try:
            self._line.send((submission, tuple(only), tuple(given_up)))
        except OSError:
            raise WorkerLost(LOST) from None
        graded = self._answer()
        assert graded is not None
        return graded

    def close(self) -> None:
        """End the process now, whatever it does."""
        with self._closing:  # two threads may: whoever gives up, and whoever replaces a judge that died
            self._process.terminate()
            self._process.join(CLOSE_SECONDS)
            self._process.kill()
            self._process.join()
            self._line.close()  # only now, because another thread may read from it

    def _answer(self) -> Graded | None:
        try:
            answer = self._line.recv()
        except (EOFError, OSError):
            raise WorkerLost(LOST) from None
        if isinstance(answer, Exception):
            raise answer
        assert answer is None or isinstance(answer, Graded)
        return answer


class SteadyJudge:
    """A judge process that is replaced where it dies.

    What it was grading is tried once more in a fresh process, exercise by exercise. An exercise at which that one dies,
    too, is not graded.
    """

    def __init__(self, plan: GradePlan, cpu: int | None = None) -> None:
        """Start the process, and do not wait for it. cpu: the only one that it may use."""
        self._plan, self._cpu = plan, cpu
        self._judge = JudgeProcess(plan, cpu)
        self._is_closed = False

    def wait(self) -> None:
        """Wait until it can grade. Raises what `start` raises there (BoxUnavailable, GraderFault, …), or WorkerLost."""
        self._judge.wait()

    def grade(self, submission: Submission, only: Collection[str] = ()) -> Graded:
        """Grade a submission. only: ids of exercises; empty: all. Raises WorkerLost if no process can be started."""
        try:
            return self._judge.grade(submission, only)
        except WorkerLost:
            self._replace()
        parts = list(self._one_by_one(submission, only))
        exercises = [exercise for part in parts for exercise in part.result.exercises]
        faults = tuple(fault for part in parts for fault in part.faults)
        return replace(parts[0], result=with_total(parts[0].result, exercises), faults=faults)

    def close(self) -> None:
        """End the process now, whatever it does, and start no other."""
        self._is_closed = True
        self._judge.close()

    def _one_by_one(self, submission: Submission, only: Collection[str]) -> Iterator[Graded]:
        wanted = only or self._plan.exercises or [exercise.id for exercise in submission.assignment.exercises]
        for id_ in (exercise.id for exercise in submission.assignment.exercises if exercise.id in wanted):
            try:
                yield self._judge.grade(submission, (id_,))
            except WorkerLost:
                self._replace()
                yield self._judge.grade(submission, (id_,), given_up=(id_,))

    def _replace(self) -> None:
        """Start another process in place of one that died. Raises WorkerLost where this is closed."""
        self._judge.close()
        if self._is_closed:
            raise WorkerLost(LOST)
        self._judge = JudgeProcess(self._plan, self._cpu)
        if self._is_closed:  # by another thread, meanwhile
            self._judge.close()
            raise WorkerLost(LOST)


LOST = "a judge process ended before it was done. Next: run the same command again"


def _serve(line: Connection, plan: GradePlan, cpu: int | None) -> None:
    """Grade one submission after another, until the caller closes the pipe."""
    if sys.platform == "linux" and cpu is not None:
        os.sched_setaffinity(0, {cpu})
    signal.signal(signal.SIGTERM, _terminate)
    start(plan)
    try:
        line.send(_state.problem)
        while True:
            message = line.recv()
            try:
                line.send(grade(*message))
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
