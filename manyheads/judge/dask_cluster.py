"""Grade on the workers of a dask scheduler. Each worker keeps a judge in another process.

Before any work is sent, every worker shows that it sees the same course and engine, and proves its
box. No student code runs in a worker: it reads files as data. It may be lost at any moment: dask
then gives its submission to another.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from ..box.level_and_device_names import Device
from ..course import CourseError, load_course
from ..files import CourseFault
from ..submission import Submission
from .judge_process import (
    JUDGE,
    Graded,
    GradePlan,
    Only,
    SteadyJudge,
    WorkerLost,
    report_unrecorded,
)
from .results_folder import Keys, files_key

try:
    import distributed
    from distributed.utils import sync
except ImportError:
    raise CourseFault(
        "--cluster needs dask.distributed. Next: pip install 'manyheads[cluster]'"
    ) from None

# the dask resource that a worker must have for each device
RESOURCES = {Device.CPU: "CPU", Device.CUDA: "GPU"}
CONNECT_SECONDS = 15.0  # a scheduler on a busy machine has been seen to need more than 5
# Few, because dask gives up on a submission after four workers that had it are lost.
SUBMISSIONS_PER_WORKER = 4
PATIENCE_SECONDS = 60.0  # how long a run waits if no worker is left
POLL_SECONDS = 1.0  # between two requests for the list of workers
GOES_ON = "run the same command again, which goes on from there"


@dataclass(frozen=True)
class RunSetup:
    """The data that the workers of one run need.

    Attributes:
        plan: The options of the run.
        key: A hash of course, engine, versions, options and secret on the machine that runs `course
            grade`.
        limit_kib: The size of the largest file that is read.
    """

    plan: GradePlan
    key: str
    limit_kib: int


def grade_on(
    address: str, plan: GradePlan, submissions: Sequence[Submission], only: Only
) -> Iterator[Graded]:
    """Grade submissions on the workers of a cluster, and yield results as they come.

    Raises CourseFault if there is no cluster or a worker cannot judge, and WorkerLost if the
    scheduler or all workers are lost.

    Args:
        address: The address of the scheduler.
        plan: The options of the run.
        submissions: The submissions.
        only: The ids of the exercises to grade, by submission; all if a submission is not listed.
    """
    course = load_course(plan.course)
    report_unrecorded(course, plan.exercises)  # here, because output of a worker goes to its log
    limit = course.limits.source_kib
    setup = RunSetup(replace(plan, reports_unrecorded=False), Keys(course, plan).of_course(), limit)
    client = _connect(address)
    try:
        workers = _Workers(client, address, RESOURCES[plan.device])
        workers.start_judges(setup)
        calls = (
            partial(
                grade_here,
                setup,
                submission,
                files_key(submission, limit),
                tuple(only.get(submission, ())),
            )
            for submission in submissions
        )
        yield from workers.results(calls)
    finally:
        with suppress(OSError):
            client.close(timeout=1.0)


class _Workers:
    """The workers of a scheduler that have a resource, as seen by one run."""

    def __init__(self, client: distributed.Client, address: str, resource: str) -> None:
        self._client, self._address, self._resource = client, address, resource
        self._gone = (
            f"the dask scheduler at {address} is gone. Next: start it again, with workers, "
            f"and {GOES_ON}"
        )
        self._worker_count, self._counted_at = 0, 0.0
        self._last_worker_at = time.monotonic()  # when there last was a worker

    def start_judges(self, setup: RunSetup) -> None:
        """Have every worker start a judge and prove its box.

        A worker that is lost meanwhile is skipped. Raises CourseFault if there is no worker, or if
        one cannot judge. Raises WorkerLost if the scheduler ends.
        """
        addresses = self._addresses()
        if not addresses:
            problem, resource = f"no worker at {self._address} announces", f"{self._resource}=1"
            start = f"dask worker {self._address} --nthreads 1 --no-nanny --resources {resource}"
            raise CourseFault(f"{problem} {resource}. Next: {start}")
        try:
            answers = self._client.run(
                start_judge_here, setup, workers=addresses, on_error="return"
            )
        except OSError:  # dask raises this if the scheduler ends meanwhile
            raise WorkerLost(self._gone) from None
        for worker, answer in answers.items():
            if isinstance(answer, CourseFault):
                raise answer
            is_lost = isinstance(answer, OSError | distributed.Reschedule)
            if isinstance(answer, Exception) and not is_lost:
                problem = f"the worker {worker} cannot judge ({answer!r})"
                raise CourseFault(f"{problem}. Next: pip install 'manyheads[cluster]' there")
        self._last_worker_at = time.monotonic()

    def results(self, calls: Iterable[Callable[[], Graded]]) -> Iterator[Graded]:
        """Make the calls on the workers, and yield their results as they come.

        Each worker gets few calls at a time, because workers may come and go. A call whose worker
        is lost is made by another. Raises the exceptions of the calls. Raises WorkerLost if several
        workers are lost with the same call, and if the scheduler or all workers are lost.
        """
        waiting, pending = iter(calls), set[distributed.Future[Graded]]()
        while True:
            room = self._capacity() - len(pending)
            try:
                for call in islice(waiting, max(0, room)):
                    pending.add(
                        self._client.submit(call, pure=False, resources={self._resource: 1})
                    )
                if not pending:
                    return
                with self._client.as_current():
                    finished = distributed.wait(pending, POLL_SECONDS, "FIRST_COMPLETED").done
                task = next(iter(finished))
                error = task.exception(POLL_SECONDS)
                # The limit is needed because a result is lost if the scheduler ends while it is on
                # its way.
                results = [] if error else [task.result(CONNECT_SECONDS)]
            except TimeoutError:
                continue
            except Exception as client_error:
                is_disconnected = isinstance(client_error, OSError | distributed.CancelledError)
                if is_disconnected or self._client.status == "closed":
                    raise WorkerLost(self._gone) from None
                raise
            if isinstance(error, distributed.KilledWorker):
                problem = "several workers ended while grading the same submission"
                raise WorkerLost(f"{problem}. Next: read the workers' logs, then {GOES_ON}")
            if error is not None:
                raise error
            pending.remove(task)
            yield from results

    def _capacity(self) -> int:
        """Return how many submissions the workers should have now, at least 1.

        Raises WorkerLost if the scheduler is gone, or if there has been no worker for
        PATIENCE_SECONDS.
        """
        if self._client.status == "closed":
            raise WorkerLost(self._gone)
        time_now = time.monotonic()
        if time_now - self._counted_at > POLL_SECONDS:
            self._worker_count, self._counted_at = len(self._addresses()), time_now
        if self._worker_count:
            self._last_worker_at = time_now
        elif time_now - self._last_worker_at > PATIENCE_SECONDS:
            raise WorkerLost(
                f"no worker is left at {self._address}. Next: start some, and {GOES_ON}"
            )
        return max(1, SUBMISSIONS_PER_WORKER * self._worker_count)

    def _addresses(self) -> list[str]:
        """Return the addresses of the workers that have the resource."""
        workers = self._client.scheduler_info(n_workers=-1).get("workers", {})
        return [
            address
            for address, worker in workers.items()
            if worker["resources"].get(self._resource, 0) >= 1
        ]


def _connect(address: str) -> distributed.Client:
    """Return a client of this scheduler. Raises CourseFault if none answers."""
    # errors are reported by our own messages
    for log in "distributed", "tornado.application", "asyncio":
        logging.getLogger(log).setLevel(logging.CRITICAL)
    try:
        return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:
        reason = f"{error}".partition("\n")[0] or type(error).__name__
        problem = f"no dask scheduler answers at {address} ({reason})"
        raise CourseFault(
            f"{problem}. Next: dask scheduler, then --cluster with the address that it prints"
        ) from None


async def start_judge_here(setup: RunSetup, dask_worker: distributed.Worker) -> None:
    """Start a judge in this worker, to which dask sent this call, and wait until it can grade.

    dask passes the worker because of the parameter's name. Raises the exceptions of
    `JudgeKeeper.start`.
    """
    keeper = await _keeper_of(dask_worker)
    await asyncio.get_running_loop().run_in_executor(None, keeper.start, setup)


def grade_here(setup: RunSetup, submission: Submission, key: str, only: Collection[str]) -> Graded:
    """Grade a submission in this worker, to which dask sent this call.

    Raises the exceptions of `JudgeKeeper.grade`.

    Args:
        setup: The options of the run.
        submission: The submission.
        key: The hash of its files on the machine that runs `course grade`.
        only: The ids of the exercises to grade; empty for all.
    """
    worker = distributed.get_worker()
    keeper: JudgeKeeper = sync(worker.loop, _keeper_of, worker)
    return keeper.grade(setup, submission, key, only)


async def _keeper_of(worker: distributed.Worker) -> JudgeKeeper:
    """Return the JudgeKeeper of the worker, which is added if there is none yet."""
    if JudgeKeeper.name not in worker.plugins:
        await worker.plugin_add(JudgeKeeper())
    keeper: JudgeKeeper = worker.plugins[JudgeKeeper.name]  # type: ignore[assignment]
    return keeper


class JudgeKeeper(distributed.WorkerPlugin):
    """Keeps the judge of a worker, and ends it when the worker begins to close.

    Otherwise the worker would wait half a minute for a result that can no longer be sent.
    """

    name = "manyheads-judge"

    def __init__(self) -> None:
        self._lock, self._is_ending = threading.Lock(), False
        self._setup: RunSetup | None = None
        self._judge: SteadyJudge | None = None

    def start(self, setup: RunSetup) -> None:
        """Start a judge for this setup if there is none, and wait until it can grade.

        Raises CourseFault if this worker cannot judge, or Reschedule if it ends.
        """
        with self._judge_for(setup):
            pass

    def grade(
        self, setup: RunSetup, submission: Submission, key: str, only: Collection[str] = ()
    ) -> Graded:
        """Grade a submission.

        Raises CourseFault if this worker cannot judge, or if the key does not fit the files here.
        Raises Reschedule if the worker ends: dask then gives the submission to another.
        """
        with self._judge_for(setup) as judge:
            if files_key(submission, setup.limit_kib) != key:
                problem = (
                    f"the files in {submission.folder} differ from those on the machine that runs "
                    "course grade"
                )
                next_step = (
                    "share that folder with every worker; or the same command again, if it has "
                    "just been changed"
                )
                raise CourseFault(f"{problem}. Next: {next_step}")
            return judge.grade(submission, only)

    def teardown(self, worker: distributed.Worker) -> None:
        """End every judge of this process, also one that is still starting.

        The lock is not taken, because another thread may hold it.
        """
        self._is_ending = True
        if self._judge is not None:
            self._judge.close()
        for child in multiprocessing.active_children():
            if child.name == JUDGE:
                child.kill()

    @contextmanager
    def _judge_for(self, setup: RunSetup) -> Iterator[SteadyJudge]:
        """Hold a judge that is ready: the current one if it has this setup, or a new one.

        Raises CourseFault with the name of this machine, or Reschedule if the worker ends.
        """
        try:
            with self._lock:
                if self._is_ending:
                    raise WorkerLost(
                        "this worker has been told to end. Next: run the same command again"
                    )
                if self._judge is None or self._setup != setup:
                    if self._judge is not None:
                        self._judge.close()
                    self._setup = None  # until the new judge can grade
                    _demand_same_course(setup)
                    self._judge = SteadyJudge(setup.plan)
                    self._judge.wait()
                    self._setup = setup
                yield self._judge
        except CourseFault as fault:
            if self._is_ending:
                raise distributed.Reschedule from None
            raise CourseFault(f"on the worker at {socket.gethostname()}, {fault}") from None


def _demand_same_course(setup: RunSetup) -> None:
    """Raise CourseFault if this worker would grade differently from `course grade`'s machine.

    It is also raised if the worker has a nanny or no course: then it cannot grade at all.
    """
    if multiprocessing.current_process().daemon:
        raise CourseFault(
            "it has a nanny, so it cannot start a judge. Next: dask worker … --no-nanny"
        )
    try:
        course = load_course(setup.plan.course)
    except CourseError:
        problem = f"there is no course in {setup.plan.course}"
        raise CourseFault(f"{problem}. Next: share that folder with every worker") from None
    if Keys(course, setup.plan).of_course() != setup.key:
        problem = (
            "the course, the grader or the package versions differ from those of the machine "
            "that runs course grade"
        )
        next_step = (
            "install the same engine and constraints.txt on both (make setup), and share the "
            "course's folder"
        )
        raise CourseFault(f"{problem}. Next: {next_step}")
