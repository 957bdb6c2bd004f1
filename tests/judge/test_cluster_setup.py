"""What a cluster must have before any work is sent to it, and what may break between its scheduler
and us.
"""

import importlib
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, Event, LocalCluster, get_client

from manyheads.course import load_course
from manyheads.files import CourseFault
from manyheads.judge.dask_cluster import JudgeKeeper, RunSetup, _Workers
from manyheads.judge.judge_process import GradePlan, WorkerLost
from manyheads.judge.results_folder import Keys, files_key
from manyheads.submission import find_submissions
from tests.conftest import Run
from tests.judge.test_cluster import CHECKS
from tests.make import BY_SUMS as RIGHT
from tests.make import CLASS, hand_in


@pytest.mark.journey  # it waits a quarter of a minute for an answer
def test_an_address_where_nobody_listens_is_one_sentence(
    run_course: Run, tiny_copy: Path, tmp_path: Path
) -> None:
    submitted = hand_in(tmp_path / "submitted", CLASS)
    with socket.socket() as bound_socket:  # and never listening
        bound_socket.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{bound_socket.getsockname()[1]}"
        completed = run_course(
            "grade",
            submitted,
            "--out",
            tmp_path / "out",
            "--course",
            tiny_copy,
            "--cluster",
            address,
        )
    assert completed.returncode == 2
    assert completed.stderr.startswith(f"course: no dask scheduler answers at {address}")
    assert len(completed.stderr.splitlines()) == 1
    assert ". Next: dask scheduler" in completed.stderr


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "manyheads.judge.dask_cluster")
    with pytest.raises(
        CourseFault, match=r"needs dask\.distributed\. Next: pip install 'manyheads\[cluster\]'$"
    ):
        importlib.import_module("manyheads.judge.dask_cluster")


def test_a_worker_that_sees_another_course_takes_no_work(tiny_copy: Path) -> None:
    course, plan = load_course(tiny_copy), GradePlan(b"secret", course=tiny_copy)
    setup = RunSetup(plan, Keys(course, plan).of_course(), course.limits.source_kib)
    with (tiny_copy / CHECKS).open("a") as file:
        file.write("\n# changed\n")
    says = r"the course, the grader or the package versions differ .* Next: install the same engine"
    with pytest.raises(CourseFault, match=says):
        JudgeKeeper().start(setup)
    shutil.rmtree(tiny_copy)
    with pytest.raises(CourseFault, match=r"there is no course in .*\. Next: share that folder"):
        JudgeKeeper().start(setup)


def test_a_worker_that_sees_other_files_grades_nothing(tiny_copy: Path, tmp_path: Path) -> None:
    course, plan = load_course(tiny_copy), GradePlan(b"secret", course=tiny_copy)
    setup = RunSetup(plan, Keys(course, plan).of_course(), course.limits.source_kib)
    submitted = hand_in(tmp_path / "submitted", {"ada": RIGHT})
    (submission,) = find_submissions(course, submitted)[0]
    key = files_key(submission, setup.limit_kib)
    shutil.rmtree(submission.folder)
    with pytest.raises(
        CourseFault, match=r"the files in .*ada/averages .*\. Next: share that folder"
    ):
        JudgeKeeper().grade(setup, submission, key)


@pytest.fixture
def client() -> Iterator[Client]:
    # What a lost client still asks ends in a traceback, tests later: it asks nothing by itself.
    options = {
        "n_workers": 1,
        "threads_per_worker": 1,
        "processes": False,
        "resources": {"CPU": 1},
        "dashboard_address": None,
    }
    with (
        dask.config.set({"distributed.client.scheduler-info-interval": "1 day"}),
        LocalCluster(**options) as cluster,
    ):
        with Client(cluster, set_as_default=False) as client:
            yield client


def results(client: Client, *calls: Callable[[], Any]) -> list[Any]:
    return list(_Workers(client, "tcp://here", "CPU").results(calls))


def wait_for(event: str) -> None:
    Event(event, client=get_client()).wait()


def fail() -> None:
    raise TypeError("a judge's own fault")


def test_what_calls_return_and_what_one_raises_is_handed_over(client: Client) -> None:
    assert sorted(results(client, *(partial(divmod, i, 2) for i in range(9)))) == [
        divmod(i, 2) for i in range(9)
    ]
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
    with pytest.raises(
        WorkerLost, match=r"^the dask scheduler at tcp://here is gone\. Next: start it again"
    ):
        results(client, partial(wait_for, "never"))
    with pytest.raises(WorkerLost, match=r"^the dask scheduler at tcp://here is gone"):
        results(client, partial(divmod, 7, 2))


def test_where_a_connection_breaks_with_a_result_on_its_way_too(client, monkeypatch):
    async def raise_os_error(*_: Any, **__: Any) -> None:
        raise OSError("Stream is closed")

    monkeypatch.setattr(client, "_gather", raise_os_error)
    with pytest.raises(WorkerLost, match=r"^the dask scheduler at tcp://here is gone"):
        results(client, partial(divmod, 7, 2))
