"""Grade on the workers of a dask scheduler. Each worker keeps a judge of its own."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..box.names import Device
from ..course import load_course
from ..errors import CourseFault
from ..submission import Submission
from .dask_worker import RunSetup, grade_here, prepare
from .grade_class import EVERYTHING, Graded, Only, grade_with
from .judge_process import GradePlan, WorkerLost
from .keys import files_key, keys_of

# The workers of a dask scheduler as an executor. A worker may be lost at any moment, also with a result on its way.
#
# distributed's own (`Client.get_executor`) then raises a TypeError: it asks for a call's state after it has its
# result.

if TYPE_CHECKING:
    import distributed

    Answer = TypeVar("Answer")


class ClusterPool(Executor):
    """Executes each call on a worker that announces the resource. A call whose worker is lost goes to another one.

    lost: what WorkerLost says in the result of every call that has none, once the scheduler is gone.
    """

    def __init__(self, client: distributed.Client, resource: str, lost: str) -> None:
        self._client, self._resource, self._lost = client, resource, lost

    def submit(self, call: Callable[..., Answer], /, *args: Any, **kwargs: Any) -> Future[Answer]:
        """Have a worker make the call, and return its answer to come; WorkerLost where none can."""
        answer: Future[Answer] = Future()
        try:
            task = self._client.submit(call, *args, pure=False, resources={self._resource: 1}, **kwargs)
        except Exception:
            if self._client.status != "closed":
                raise
            answer.set_exception(WorkerLost(self._lost))
            return answer
        answer.add_done_callback(lambda answer: task.cancel() if answer.cancelled() and not task.done() else None)
        assert self._client.loop is not None  # a client that has submitted has one
        self._client.loop.add_callback(self._follow, task, answer)
        return answer

    async def _follow(self, task: distributed.Future[Answer], answer: Future[Answer]) -> None:
        """Hand over what becomes of the task, unless nobody waits for it any more."""
        try:
            result = await task
        except BaseException as error:
            if answer.set_running_or_notify_cancel():
                # What the call raised. Anything else is a connection that broke.
                answer.set_exception(error if task.status == "error" else WorkerLost(self._lost))
        else:
            if answer.set_running_or_notify_cancel():
                answer.set_result(result)


if TYPE_CHECKING:
    from distributed import Client

RESOURCES = {Device.CPU: "CPU", Device.CUDA: "GPU"}  # the dask resource that a worker needs for each
CONNECT_SECONDS = 15.0  # a scheduler on a busy machine has been seen to need more than 5
AHEAD = (
    4  # submissions sent to each worker: few, because dask gives up on a submission when four workers with it are lost
)
PATIENCE_SECONDS = 60.0  # how long a run waits if no worker is left
POLL_SECONDS = 1.0  # between two requests for the list of workers
CLOSE_SECONDS = 1.0
KILLED = (
    "several workers ended while grading the same submission. "
    "Next: read the workers' logs, then run the same command again, which goes on from there"
)
GONE = "the dask scheduler at {} is gone. Next: start it again, with workers, and run the same command again, which goes on from there"


def grade_on(
    address: str, plan: GradePlan, submissions: Sequence[Submission], only: Only = EVERYTHING
) -> Iterator[Graded]:
    """Yield results as they come. only: ids of exercises, by submission; all of those that are not in it.

    Raises CourseFault if there is no cluster or a worker cannot judge.
    """
    course = load_course(plan.course)
    setup = RunSetup(plan, keys_of(course, plan).of_course(), course.limits.source_kib)
    resource = RESOURCES[plan.device]
    with _connected(address) as client:
        from distributed import KilledWorker

        workers = _Workers(client, address, resource)
        try:
            workers.prepare(setup)
        except OSError:  # dask raises this when the scheduler ends meanwhile
            raise WorkerLost(GONE.format(address)) from None
        calls = (partial(grade_here, setup, s, files_key(s, setup.limit_kib), only.get(s, ())) for s in submissions)
        pool = ClusterPool(client, resource, GONE.format(address))
        try:
            yield from grade_with(pool, calls, workers.room)
        except KilledWorker:
            raise WorkerLost(KILLED) from None


@dataclass
class _Workers:
    """The workers of a cluster that have a resource."""

    client: Client
    address: str
    resource: str
    count: int = 0
    counted: float = -math.inf  # the time of the last count
    seen: float = -math.inf  # the last time at which there was a worker

    def prepare(self, setup: RunSetup) -> None:
        """Have every worker prove its box before any work is sent. Raises CourseFault if one cannot."""
        addresses = self._addresses()
        if not addresses:
            raise CourseFault(
                f"no worker at {self.address} announces {self.resource}=1. "
                f"Next: dask worker {self.address} --nthreads 1 --no-nanny --resources {self.resource}=1"
            )
        answers = self.client.run(prepare, setup, workers=addresses, on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, CourseFault):
                raise answer
            if isinstance(answer, Exception) and not isinstance(
                answer, OSError
            ):  # OSError: the worker is lost, or proves itself later
                raise CourseFault(
                    f"the worker {worker} cannot judge ({answer!r}). Next: pip install 'manyheads[cluster]' there"
                )

    def room(self) -> int:
        """Return how many submissions the workers should have at once.

        Raises WorkerLost if there has been no worker for long, or if the scheduler is gone: a call whose reply was on
        its way at that moment would be waited for without end.
        """
        if self.client.status == "closed":
            raise WorkerLost(GONE.format(self.address))
        now = time.monotonic()
        if now - self.counted > POLL_SECONDS:
            self.count, self.counted = len(self._addresses()), now
        if self.count or self.seen == -math.inf:
            self.seen = now
        elif now - self.seen > PATIENCE_SECONDS:
            raise WorkerLost(
                f"no worker is left at {self.address}. Next: start some, and run the same command again, which goes on from there"
            )
        return max(1, AHEAD * self.count)

    def _addresses(self) -> list[str]:
        workers = self.client.scheduler_info(n_workers=-1).get("workers", {})
        return [address for address, worker in workers.items() if worker["resources"].get(self.resource, 0) >= 1]


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """Connect to that scheduler. Raises CourseFault."""
    try:
        from distributed import Client
    except ImportError:
        raise CourseFault("--cluster needs dask.distributed. Next: pip install 'manyheads[cluster]'") from None
    for log in "distributed", "tornado.application":  # errors are reported by our own messages
        logging.getLogger(log).setLevel(logging.CRITICAL)
    try:
        asyncio.run(_try_connect(address))  # a client that cannot connect logs much and gives up late
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:
        reason = f"{error}".partition("\n")[0] or type(error).__name__
        raise CourseFault(
            f"no dask scheduler answers at {address} ({reason}). "
            "Next: dask scheduler, then --cluster with the address that it prints"
        ) from None
    try:
        yield client
    finally:
        with suppress(OSError):
            client.close(timeout=CLOSE_SECONDS)


async def _try_connect(address: str) -> None:
    """Connect once, with or without TLS as dask's configuration says."""
    from distributed import Security
    from distributed.comm.core import connect

    await (await connect(address, CONNECT_SECONDS, **Security().get_connection_args("client"))).close()
