"""Internal: a real cluster cannot be made to break at a chosen moment, so tests simulate it.

Also what a cluster must have before it gets work.
"""

import importlib
import shutil
import socket
import sys
import threading
from functools import partial
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
from tests.make import BY_SUMS as RIGHT
from tests.make import add, hand_in


@pytest.mark.journey  # it waits a quarter of a minute for an answer
def test_an_address_without_a_scheduler_is_reported_in_one_line(run_course, tiny_copy, tmp_path):
    submitted = hand_in(tmp_path / "submitted", {"ada": RIGHT})
    with socket.socket() as bound_socket:  # and never listening
        bound_socket.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{bound_socket.getsockname()[1]}"
        completed = run_course("grade", submitted, "--course", tiny_copy, "--cluster", address)
    assert completed.returncode == 2
    (line,) = completed.stderr.splitlines()
    assert line.startswith(f"course: no dask scheduler answers at {address}")
    assert ". Next: dask scheduler" in line


def test_a_missing_dask_is_reported_with_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "manyheads.judge.dask_cluster")
    message = r"needs dask\.distributed\. Next: pip install 'manyheads\[cluster\]'$"
    with pytest.raises(CourseFault, match=message):
        importlib.import_module("manyheads.judge.dask_cluster")


@pytest.fixture
def setup(tiny_copy):
    """Return what a run sends to each worker, with a hash of the files where the run started."""
    course = load_course(tiny_copy)
    plan = GradePlan(b"secret", course=tiny_copy)
    course_key = Keys(course, plan).of_course()
    return RunSetup(plan, course_key, course.limits.source_kib)


@pytest.fixture
def worker():
    """The code that runs on a worker. Here it sees the same files, which tests then change."""
    return JudgeKeeper()


def test_a_worker_refuses_a_submission_that_it_does_not_have(setup, worker, tiny_copy, tmp_path):
    submitted = hand_in(tmp_path / "submitted", {"ada": RIGHT})
    (submission,), _ = find_submissions(load_course(tiny_copy), submitted)
    submission_key = files_key(submission, setup.limit_kib)
    shutil.rmtree(submission.folder)
    message = r"the files in .*ada/averages .*\. Next: share that folder"
    with pytest.raises(CourseFault, match=message):
        worker.grade(setup, submission, submission_key)


def test_a_worker_with_another_version_of_the_course_refuses_to_start(setup, worker, tiny_copy):
    add("grader/checks/test_running_mean.py", "\n# changed\n")(tiny_copy)
    message = r"the course, the grader or the package versions differ .* Next: install the same"
    with pytest.raises(CourseFault, match=message):
        worker.start(setup)


def test_a_worker_without_the_course_refuses_to_start(setup, worker, tiny_copy):
    shutil.rmtree(tiny_copy)
    with pytest.raises(CourseFault, match=r"there is no course in .*\. Next: share that folder"):
        worker.start(setup)


@pytest.fixture
def client():
    """Return a client of a cluster in this process, with one worker."""
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    options |= {"resources": {"CPU": 1}, "dashboard_address": None}
    # A lost client that still asks the scheduler would end in a traceback, some tests later.
    quiet = dask.config.set({"distributed.client.scheduler-info-interval": "1 day"})
    with quiet, LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def worker_results(client, *calls):
    """Return the values of these calls, made by a worker of the client's cluster."""
    return list(_Workers(client, "tcp://here", "CPU").results(calls))


def wait_for(event):
    Event(event, client=get_client()).wait()


def fail():
    raise TypeError("a judge's own fault")


def test_workers_send_back_values_and_exceptions(client):
    calls = [partial(divmod, number, 2) for number in range(9)]
    assert sorted(worker_results(client, *calls)) == [divmod(number, 2) for number in range(9)]
    with pytest.raises(TypeError, match=r"^a judge's own fault$"):
        worker_results(client, fail)


def test_a_received_result_counts_even_if_its_worker_is_lost_then(client, monkeypatch):
    gather = client._gather

    async def gather_and_lose(tasks: Any, **options: Any) -> Any:
        result = await gather(tasks, **options)
        for task in tasks:
            task._state.lose()
        return result

    monkeypatch.setattr(client, "_gather", gather_and_lose)
    assert worker_results(client, partial(divmod, 7, 2)) == [(3, 1)]


GONE = r"^the dask scheduler at tcp://here is gone\. Next: start it again"


def test_a_closed_client_is_reported_as_a_lost_scheduler(client):
    threading.Timer(0.5, client.close).start()
    for call in (partial(wait_for, "never"), partial(divmod, 7, 2)):
        with pytest.raises(WorkerLost, match=GONE):
            worker_results(client, call)


def test_a_connection_broken_in_transfer_is_reported_as_a_lost_scheduler(client, monkeypatch):
    async def raise_os_error(*_: Any, **__: Any) -> None:
        raise OSError("Stream is closed")

    monkeypatch.setattr(client, "_gather", raise_os_error)
    with pytest.raises(WorkerLost, match=GONE):
        worker_results(client, partial(divmod, 7, 2))
