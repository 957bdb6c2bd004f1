"""Calls on a real dask scheduler with a worker, both of this process, and what may break between them and us."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dask
import pytest
from distributed import Client, Event, LocalCluster, get_client

from manyheads.judge.cluster import _Workers
from manyheads.judge.judge_process import WorkerLost


@pytest.fixture
def client() -> Iterator[Client]:
    # What a lost client still asks ends in a traceback, tests later: it asks nothing by itself.
    own = {
        "n_workers": 1,
        "threads_per_worker": 1,
        "processes": False,
        "resources": {"CPU": 1},
        "dashboard_address": None,
    }
    with dask.config.set({"distributed.client.scheduler-info-interval": "1 day"}), LocalCluster(**own) as cluster:
        with Client(cluster, set_as_default=False) as client:
            yield client


def results(client: Client, *calls: Callable[[], Any]) -> list[Any]:
    return list(_Workers(client, "tcp://here", "CPU").results(calls))


def wait_for(event: str) -> None:
    Event(event, client=get_client()).wait()


def fail() -> None:
    raise TypeError("a judge's own fault")


def test_what_calls_return_and_what_one_raises_is_handed_over(client: Client) -> None:
    assert sorted(results(client, *(partial(divmod, i, 2) for i in range(9)))) == [divmod(i, 2) for i in range(9)]
    with pytest.raises(TypeError, match=r"^a judge's own fault$"):
        results(client, fail)


def test_a_result_that_came_counts_although_its_worker_is_lost_meanwhile(client, monkeypatch):
    gather = client._gather

    async def gather_and_lose(tasks: Any, **options: Any) -> Any:
        result = await gather(tasks, **options)
        for task in tasks:
            task._state.lose()
        return result

    monkeypatch.setattr(client, "_gather", gather_and_lose)
    assert results(client, partial(divmod, 7, 2)) == [(3, 1)]


def test_where_the_client_has_closed_the_scheduler_is_gone(client: Client) -> None:
    threading.Timer(0.5, client.close).start()
    with pytest.raises(WorkerLost, match=r"^the dask scheduler at tcp://here is gone\. Next: start it again"):
        results(client, partial(wait_for, "never"))
    with pytest.raises(WorkerLost, match=r"^the dask scheduler at tcp://here is gone"):
        results(client, partial(divmod, 7, 2))


def test_where_a_connection_breaks_with_a_result_on_its_way_too(client, monkeypatch):
    async def broken(*_: Any, **__: Any) -> None:
        raise OSError("Stream is closed")

    monkeypatch.setattr(client, "_gather", broken)
    with pytest.raises(WorkerLost, match=r"^the dask scheduler at tcp://here is gone"):
        results(client, partial(divmod, 7, 2))
