"""A class graded on a cluster: a scheduler and two workers as processes on this machine."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from distributed import Client

from manyheads.box.level_and_device_names import Device
from manyheads.course import load_course
from manyheads.course.model import course_secret
from manyheads.files import CourseFault
from manyheads.judge.dask_cluster import grade_on
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.judge.judge_process import GradePlan, WorkerLost
from manyheads.judge.results_folder import JOURNAL
from manyheads.result import Result
from manyheads.submission import find_submissions
from tests import make
from tests.make import BY_SUMS as RIGHT
from tests.make import CLASS, REPOSITORY, TINY, copy_course, hand_in

SLOW = RIGHT.replace("    assert", "    import time\n\n    time.sleep(0.25)\n    assert")
CHECKS = "grader/checks/test_running_mean.py"


pytestmark = pytest.mark.journey


class Cluster:
    """A scheduler, its workers, and the course that they grade.

    Attributes:
        workers: The workers, by name; each has a log with its name.
    """

    def __init__(self, folder, stack):
        """Start a scheduler and two workers. They end when the stack closes."""
        self.folder, self.course = folder, copy_course(TINY, folder / "course")
        self.workers: dict[str, psutil.Popen] = {}
        file = folder / "scheduler.json"
        options = f"--host 127.0.0.1 --port 0 --no-dashboard --scheduler-file {file}"
        self.scheduler = self._start("scheduler", f"scheduler {options}")
        stack.callback(self.scheduler.kill)
        while not file.exists() or not file.read_text():
            assert self.scheduler.poll() is None, (folder / "scheduler.log").read_text()
            time.sleep(0.02)
        self.address = json.loads(file.read_text())["address"]
        self.client = stack.enter_context(Client(self.address, set_as_default=False))
        stack.callback(lambda: [worker.kill() for worker in self.alive()])
        self.add("one")
        self.add("two")

    def _start(self, name, arguments, **environment):
        command = [sys.executable, "-m", "dask", *arguments.split()]
        env = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment}
        with (self.folder / f"{name}.log").open("wb") as log:
            outputs = {"stdout": log, "stderr": log}
            return psutil.Popen(
                command, env=env, cwd=self.folder, start_new_session=True, **outputs
            )

    def add(self, name, **environment):
        options = f"--nthreads 1 --no-nanny --resources CPU=1 --no-dashboard --name {name}"
        self.workers[name] = self._start(name, f"worker {self.address} {options}", **environment)
        self.client.wait_for_workers(len(self.alive()), timeout=60)
        return self.workers[name]

    def alive(self):
        return [worker for worker in self.workers.values() if worker.poll() is None]

    def worker_names(self):
        """Return the names of the workers that the scheduler knows, by address."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: workers[address]["name"] for address in workers}

    def submissions(self, folder, attempts):
        """Hand in attempts (student → text) and return the submissions."""
        return find_submissions(load_course(self.course), hand_in(folder, attempts))[0]

    def grade(self, submissions, device=Device.CPU):
        plan = GradePlan(course_secret(self.course), course=self.course, device=device)
        return grade_on(self.address, plan, submissions, {})

    def start_grading(self, folder, attempts):
        """Start `course grade --cluster` as the leader of a process group."""
        submitted = hand_in(folder / "submitted", attempts)
        places = ("--out", folder / "out", "--course", self.course, "--cluster", self.address)
        return make.start(*make.COURSE, "grade", submitted, *places, "--seed", "0")


@pytest.fixture(scope="module")
def shared_cluster():
    """Return a cluster in /var/tmp. In /tmp nothing could leak: each attempt has its own /tmp."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        folder.chmod(0o755)
        yield Cluster(folder, stack)


def results_in(out):
    """Return the results that are written so far, by student."""
    results = [Result.model_validate_json(path.read_bytes()) for path in out.glob("*/*.json")]
    return {result.student: result for result in results}


def wait_while_running(condition, process):
    """Wait until the condition holds. Fail if the process ends before that."""
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)


def test_two_workers_give_the_same_results_as_one_machine(shared_cluster, box, tmp_path):
    process = shared_cluster.start_grading(tmp_path, CLASS)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    judge = Judge(
        load_course(shared_cluster.course), box, Settings(course_secret(shared_cluster.course))
    )
    submissions = shared_cluster.submissions(tmp_path / "submitted", CLASS)
    results = {submission.student: judge.grade(submission) for submission in submissions}
    assert results_in(tmp_path / "out") == results
    scores = {student: result.score for student, result in results.items()}
    assert scores == {"ada": 4, "ben": 2, "cat": 0, "dan": 0, "eve": 3}
    assert all(worker.children() for worker in shared_cluster.alive()), "each has a judge"


def test_a_worker_with_a_leaking_box_stops_the_run_before_grading(shared_cluster, tmp_path):
    bwrap = shared_cluster.folder / "bin" / "bwrap"
    bwrap.parent.mkdir()
    slowly = "sleep 2"  # the other two workers would have graded everybody meanwhile
    bwrap.write_text(
        f'#!/bin/sh\n{slowly}\nexec {shutil.which("bwrap")} --ro-bind /var/tmp /var/tmp "$@"\n'
    )
    bwrap.chmod(0o755)
    leaking = shared_cluster.add("leaking", PATH=f"{bwrap.parent}:{os.environ['PATH']}")
    process = shared_cluster.start_grading(tmp_path, CLASS)
    output, _ = process.communicate(timeout=120)
    leaking.kill()
    leaking.wait()
    while "leaking" in shared_cluster.worker_names().values():
        time.sleep(0.02)
    assert process.returncode == 2, output
    assert f"on the worker at {socket.gethostname()}, level namespaces leaks here" in output
    assert "read a planted secret" in output
    assert "Nothing was graded. Next: " in output
    assert not results_in(tmp_path / "out")
    logged = (shared_cluster.folder / "leaking.log").read_text()
    assert "RunSetup(plan=GradePlan(" in logged, "dask writes what it was asked to do into its log"
    assert course_secret(shared_cluster.course).decode() not in logged


def test_every_student_is_graded_once_if_a_worker_is_killed(shared_cluster, tmp_path):
    students, out = [f"s{i}" for i in range(5)], tmp_path / "out"
    process = shared_cluster.start_grading(tmp_path, dict.fromkeys(students, SLOW))
    wait_while_running(lambda: results_in(out), process)
    tasks = shared_cluster.client.processing()
    busiest = max(tasks, key=lambda address: len(tasks[address]))
    assert tasks[busiest]
    victim = shared_cluster.workers[shared_cluster.worker_names()[busiest]]
    judge_and_box = victim.children(recursive=True)
    victim.kill()
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "5 submissions in" in output
    scores = {student: result.score for student, result in results_in(out).items()}
    assert scores == dict.fromkeys(students, 4)
    entries = [json.loads(line) for line in (out / JOURNAL).read_text().splitlines() if line]
    assert sorted(name for name, _ in entries) == [f"{s}/averages" for s in students]
    assert not psutil.wait_procs(judge_and_box, timeout=60)[1], (
        "its judge and its box ended with it"
    )


def test_a_killed_judge_is_replaced(shared_cluster, tmp_path):
    graded = shared_cluster.grade(
        shared_cluster.submissions(tmp_path, dict.fromkeys(("ada", "ben", "cat"), SLOW))
    )
    scores = [next(graded).result.score]
    for worker in shared_cluster.alive():
        judge = next(
            p for p in worker.children(recursive=True) if "spawn_main" in " ".join(p.cmdline())
        )
        judge.kill()
    scores += [g.result.score for g in graded]
    assert scores == [4, 4, 4]


def test_ctrl_c_does_not_wait_for_workers(shared_cluster, tmp_path):
    process = shared_cluster.start_grading(tmp_path, {"ada": RIGHT, "ben": SLOW, "cat": SLOW})
    wait_while_running(lambda: results_in(tmp_path / "out"), process)
    for worker in shared_cluster.alive():
        worker.send_signal(signal.SIGSTOP)
    try:
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        for worker in shared_cluster.alive():
            worker.send_signal(signal.SIGCONT)
    assert process.returncode == 130, output
    assert "of 3 submissions are graded. Next: run the same command again" in output
    assert "Traceback" not in output


BREAK_CLIENT = """
import asyncio, sys, threading
from manyheads.judge import dask_cluster
called = threading.Semaphore(0)
async def fail():
    called.release()
    raise OSError('Stream is closed')
def start_to_fail():
    asyncio.ensure_future(fail())
client = dask_cluster._connect(sys.argv[1])
for callback in fail, start_to_fail:
    client.loop.add_callback(callback)
    called.acquire()
client.close()
"""


def test_an_error_inside_dask_is_not_shown(shared_cluster, capfd):
    """Ctrl-C closes the client while a reply is on its way, and tornado or asyncio would log it."""
    command = [sys.executable, "-c", BREAK_CLIENT, shared_cluster.address]
    subprocess.run(command, check=True, cwd=REPOSITORY)
    assert not capfd.readouterr().err


def test_a_changed_course_is_graded_by_a_new_judge(shared_cluster, tmp_path):
    submissions = shared_cluster.submissions(tmp_path, {"ada": RIGHT})
    checks = shared_cluster.course / CHECKS
    for title in ("averages all that came so far", "is the mean so far"):
        (graded,) = shared_cluster.grade(submissions)
        assert title in [check.title for check in graded.result.exercises[0].checks]
        checks.write_text(checks.read_text().replace(title, "is the mean so far"))


def test_grading_on_a_gpu_needs_a_worker_that_announces_one(shared_cluster, tmp_path):
    submissions = shared_cluster.submissions(tmp_path, {"ada": RIGHT})
    message = r"^no worker at .* announces GPU=1\. Next: dask worker .*--resources GPU=1$"
    with pytest.raises(CourseFault, match=message):
        next(shared_cluster.grade(submissions, Device.CUDA))


def test_lost_workers_and_a_lost_scheduler_are_reported(shared_cluster, tmp_path, monkeypatch):
    submissions = shared_cluster.submissions(tmp_path, dict.fromkeys("abcdefghijklmnopqrst", RIGHT))
    first_run, second_run = shared_cluster.grade(submissions), shared_cluster.grade(submissions)
    next(first_run)
    next(second_run)  # each run has sent four or eight submissions, and has others left
    for worker in shared_cluster.alive():
        worker.kill()
    with monkeypatch.context() as impatient:
        impatient.setattr("manyheads.judge.dask_cluster.PATIENCE_SECONDS", 0)
        with pytest.raises(WorkerLost, match=r"^no worker is left at .*\. Next: start some"):
            list(first_run)
    shared_cluster.scheduler.kill()
    with pytest.raises(
        WorkerLost, match=r"^the dask scheduler at .* is gone\. Next: start it again"
    ):
        list(second_run)
