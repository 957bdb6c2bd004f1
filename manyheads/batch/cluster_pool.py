"""The workers of a dask scheduler as an executor. A worker may be lost at any moment, also with a result on its way.

distributed's own (`Client.get_executor`) then raises a TypeError: it asks for a call's state after it has its result.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, TypeVar

from .judge_process import WorkerLost

if TYPE_CHECKING:
    import distributed

    Answer = TypeVar("Answer")


class ClusterPool(Executor):
    """Executes each call on a worker that announces the resource. A call whose worker is lost goes to another one.

    lost: what WorkerLost says in the result of every call that has none, once the scheduler is gone."""

    def __init__(self, client: distributed.Client, resource: str, lost: str) -> None:
        self._client, self._resource, self._lost = client, resource, lost

    def submit(self, call: Callable[..., Answer], /, *args: Any, **kwargs: Any) -> Future[Answer]:
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
