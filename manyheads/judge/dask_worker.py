"""The part of `course grade --cluster` that runs in a dask worker: it keeps one warm judge and sends it submissions.

No student code runs in the worker's process: it reads files as data, and its judge, a separate process, sends attempts
into the box.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import threading
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..course import CourseError, load_course
from ..errors import CourseFault
from ..submission import Submission
from .judge_process import Graded, GradePlan, SteadyJudge, WorkerLost
from .keys import files_key, keys_of
from .process_ties import call_at_the_end_of, kill_judges

if TYPE_CHECKING:
    from distributed import Worker


@dataclass(frozen=True)
class RunSetup:
    """What the workers of one run need to grade."""

    plan: GradePlan
    key: str  # a hash of course, engine, versions, options and secret on the machine that runs `course grade`
    limit_kib: int  # the largest file that is read


@dataclass
class _WorkerState:
    """This worker's judge, and the setup for which it was started."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    setup: RunSetup | None = None
    judge: SteadyJudge | None = None
    ending: bool = False  # whether this worker has been told to end

    def judge_for(self, setup: RunSetup) -> SteadyJudge:
        """Return the judge for this setup: the current one, or a new one. Raises CourseFault."""
        if self.ending:
            raise WorkerLost(ENDING)
        if self.judge is None or self.setup != setup:
            self.close_judge()
            _check(setup)
            self.judge, self.setup = SteadyJudge(setup.plan), setup
        try:
            self.judge.wait()
        except CourseFault:
            self.close_judge()
            raise
        return self.judge

    def close_judge(self) -> None:
        """End the current judge."""
        if self.judge is not None:
            self.judge.close()
        self.judge = None

    def end(self) -> None:
        """End the judge, whatever it does, and start no other. Called while another thread may hold the lock."""
        self.ending = True
        if self.judge is not None:
            self.judge.close()
        kill_judges()


ENDING = "this worker has been told to end. Next: run the same command again"
_state = _WorkerState()


async def prepare(setup: RunSetup, dask_worker: Worker | None = None) -> None:
    """Prepare for a setup: check files and versions, and prove the box. Raises CourseFault, or OSError if the worker ends.

    dask_worker: this worker, given by dask because of its name.
    """
    if dask_worker is not None:
        await call_at_the_end_of(dask_worker, _state.end)
    await asyncio.get_running_loop().run_in_executor(None, _prepare, setup)


def _prepare(setup: RunSetup) -> None:
    try:
        with _state.lock:
            _state.judge_for(setup)
    except CourseFault as fault:
        if _state.ending:
            raise ConnectionAbortedError(ENDING) from None
        raise _with_hostname(fault) from None


def grade_here(setup: RunSetup, submission: Submission, key: str, only: Collection[str] = ()) -> Graded:
    """Grade a submission. key: the hash of its files on the machine that runs `course grade`. only: ids of exercises.

    Raises CourseFault, or Reschedule if this worker ends: dask then gives the submission to another.
    """
    _end_with_this_worker()
    try:
        if files_key(submission, setup.limit_kib) != key:
            raise CourseFault(
                f"the files in {submission.folder} differ from those on the machine that runs course grade. "
                "Next: share that folder with every worker; or the same command again, if it has just been changed"
            )
        with _state.lock:
            return _state.judge_for(setup).grade(submission, only)
    except CourseFault as fault:
        if _state.ending:
            from distributed import Reschedule

            raise Reschedule from None
        raise _with_hostname(fault) from None


def _end_with_this_worker() -> None:
    """Do what `prepare` has done, in a worker that came later; nothing where no worker runs this."""
    from distributed import get_worker
    from distributed.utils import sync

    with suppress(ValueError):
        worker = get_worker()
        sync(worker.loop, call_at_the_end_of, worker, _state.end)


def _check(setup: RunSetup) -> None:
    """Raise CourseFault if this worker would grade differently from the machine that runs `course grade`."""
    if multiprocessing.current_process().daemon:
        raise CourseFault("it has a nanny, so it cannot start a judge. Next: dask worker … --no-nanny")
    try:
        course = load_course(setup.plan.course)
    except CourseError:
        raise CourseFault(
            f"there is no course in {setup.plan.course}. Next: share that folder with every worker"
        ) from None
    if keys_of(course, setup.plan).of_course() != setup.key:
        raise CourseFault(
            "the course, the grader or the package versions differ from those of the machine that runs course grade. "
            "Next: install the same engine and constraints.txt on both (make setup), and share the course's folder"
        )


def _with_hostname(fault: CourseFault) -> CourseFault:
    """Return the same fault, with the name of this machine."""
    return CourseFault(f"on the worker at {socket.gethostname()}, {fault}")
