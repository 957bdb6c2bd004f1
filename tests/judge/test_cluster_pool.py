"""Calls on a real dask scheduler with a worker, both of this process, and what may break between them and us."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import wait
from typing import Any

import dask
import pytest
from distributed import Client, Event, LocalCluster, get_client

from manyheads.judge.cluster import ClusterPool
from manyheads.judge.judge_process import WorkerLost


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, resources={"CPU": 1}, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    # What a lost client still asks ends in a traceback, tests later: it asks nothing by itself.
    with dask.config.set({"distributed.client.scheduler-info-interval": "1 day"}):
        with Client(cluster, set_as_default=False) as client:
            yield client


@pytest.fixture
def pool(client: Client) -> ClusterPool:
    return ClusterPool(client, "CPU", "the scheduler is gone")


def wait_for(event: str) -> None:
    Event(event, client=get_client()).wait()


def fail() -> None:
    raise TypeError("a judge's own fault")


def test_what_a_call_returns_and_what_it_raises_is_handed_over(pool: ClusterPool) -> None:
    assert pool.submit(divmod, 7, 2).result(60) == (3, 1)
    with pytest.raises(TypeError, match=r"^a judge's own fault$"):
        pool.submit(fail).result(60)


def test_a_result_that_came_counts_although_its_worker_is_lost_meanwhile(
    pool: ClusterPool, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    gather = client._gather

    async def gather_and_lose(tasks: Any, **options: Any) -> Any:
        result = await gather(tasks, **options)
        for task in tasks:
            task._state.lose()
        return result

    monkeypatch.setattr(client, "_gather", gather_and_lose)
    assert pool.submit(divmod, 7, 2).result(60) == (3, 1)


def test_a_call_without_a_scheduler_says_that_it_is_gone(
    pool: ClusterPool, cluster: LocalCluster, client: Client
) -> None:
    waiting = pool.submit(wait_for, "never")
    client.close()
    late = pool.submit(divmod, 7, 2)
    for answer in waiting, late:
        with pytest.raises(WorkerLost, match=r"^the scheduler is gone$"):
            answer.result(60)


def test_a_connection_that_breaks_with_a_result_on_its_way_says_so_too(
    pool: ClusterPool, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise OSError("Stream is closed")

    monkeypatch.setattr(client, "_gather", broken)
    with pytest.raises(WorkerLost, match=r"^the scheduler is gone$"):
        pool.submit(divmod, 7, 2).result(60)


def test_a_call_that_is_cancelled_is_not_executed(pool: ClusterPool, client: Client) -> None:
    first, second = pool.submit(wait_for, "go"), pool.submit(divmod, 7, 2)
    assert second.cancel()
    while len(client.processing()) and sum(map(len, client.processing().values())) > 1:
        time.sleep(0.01)
    Event("go", client=client).set()
    assert wait([first], 60).done
    assert second.cancelled()


def test_cancelling_after_the_client_has_closed_says_nothing(
    pool: ClusterPool, client: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a callback raises is logged with its traceback."""

    async def follow(*_: object) -> None:
        """Nobody tells the answer that the client closes."""

    monkeypatch.setattr(pool, "_follow", follow)
    answer = pool.submit(wait_for, "never")
    client.close()
    assert answer.cancel()
    assert not [record for record in caplog.records if record.name == "concurrent.futures"]
