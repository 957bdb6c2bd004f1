"""A class graded on a cluster: a real scheduler, two workers, each a process of its own, all on
this machine.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from distributed import Client

from manyheads.box.connection import Box
from manyheads.box.level_and_device_names import Device
from manyheads.course import load_course
from manyheads.course.model import course_secret
from manyheads.files import CourseFault
from manyheads.judge.dask_cluster import grade_on
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.judge.judge_process import GradePlan, WorkerLost
from manyheads.judge.results_folder import JOURNAL as NAME
from manyheads.result import Result
from manyheads.submission import Submission, find_submissions
from tests import make
from tests.make import BY_SUMS as RIGHT
from tests.make import CLASS, REPOSITORY, copy_course, hand_in

SLOW = RIGHT.replace("    assert", "    import time\n\n    time.sleep(0.25)\n    assert")
CHECKS = "grader/checks/test_running_mean.py"


pytestmark = pytest.mark.journey


@dataclass
class Worker:
    """A worker's process, the address that the scheduler knows it by, and its log."""

    process: subprocess.Popen[bytes]
    name: str
    log: Path

    def family(self) -> list[psutil.Process]:
        """Its judge, the judge's box, and what is in it."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Cluster:
    """A scheduler, its workers, and the course that they grade."""

    folder: Path
    course: Path
    scheduler: subprocess.Popen[bytes]
    address: str
    client: Client
    workers: dict[str, Worker] = field(default_factory=dict)

    def add(self, name: str, **environment: str) -> Worker:
        options = [
            "--nthreads",
            "1",
            "--no-nanny",
            "--resources",
            "CPU=1",
            "--name",
            name,
            "--no-dashboard",
        ]
        log = self.folder / f"{name}.log"
        self.workers[name] = Worker(
            start("worker", self.address, *options, log=log, **environment), name, log
        )
        self.client.wait_for_workers(len(self.alive()), timeout=60)
        return self.workers[name]

    def alive(self) -> list[Worker]:
        return [worker for worker in self.workers.values() if worker.process.poll() is None]

    def in_hand(self, worker: Worker) -> int:
        """How many submissions a worker has been given and has not graded."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        return sum(
            len(self.client.processing()[a]) for a, w in workers.items() if w["name"] == worker.name
        )

    def plan(self, device: Device = Device.CPU) -> GradePlan:
        return GradePlan(course_secret(self.course), course=self.course, device=device)

    def submissions(self, folder: Path) -> list[Submission]:
        return find_submissions(load_course(self.course), folder)[0]


def start(*arguments: str, log: Path, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", *arguments]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment}
    with log.open("wb") as file:
        return subprocess.Popen(
            command, stdout=file, stderr=file, env=env, cwd=log.parent, start_new_session=True
        )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Not below /tmp: an attempt has a /tmp of its own, so nothing there could leak into it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        folder.chmod(0o755)
        course = folder / "course"
        copy_course(REPOSITORY / "tests" / "tiny_course", course)
        says = folder / "scheduler.json"
        options = [
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(says),
        ]
        scheduler = start("scheduler", *options, log=folder / "scheduler.log")
        stack.callback(scheduler.kill)
        while not says.exists() or not says.read_text():
            assert scheduler.poll() is None, (folder / "scheduler.log").read_text()
            time.sleep(0.02)
        address = json.loads(says.read_text())["address"]
        client = stack.enter_context(Client(address, set_as_default=False))
        running = Cluster(folder, course, scheduler, address, client)
        stack.callback(lambda: [worker.kill() for worker in running.alive()])
        running.add("one")
        running.add("two")
        yield running


def results_in(out: Path) -> dict[str, Result]:
    return {
        path.parent.name: Result.model_validate_json(path.read_bytes())
        for path in sorted(out.glob("*/*.json"))
    }


def start_grading(cluster: Cluster, submitted: Path, out: Path) -> subprocess.Popen[str]:
    """`course grade --cluster` as the leader of a process group of its own."""
    options = [
        "--out",
        out,
        "--course",
        cluster.course,
        "--seed",
        "0",
        "--cluster",
        cluster.address,
    ]
    return make.start(*make.COURSE, "grade", submitted, *options)


def wait_until(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)


def test_two_workers_give_what_this_machine_gives(
    cluster: Cluster, box: Box, tmp_path: Path
) -> None:
    submitted = hand_in(tmp_path / "submitted", CLASS)
    judge = Judge(load_course(cluster.course), box, Settings(cluster.plan().secret))
    here = {s.student: judge.grade(s) for s in cluster.submissions(submitted)}
    process = start_grading(cluster, submitted, tmp_path / "out")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert results_in(tmp_path / "out") == here
    assert {s: r.score for s, r in here.items()} == {
        "ada": 4,
        "ben": 2,
        "cat": 0,
        "dan": 0,
        "eve": 3,
    }
    assert all(worker.family() for worker in cluster.workers.values()), "each has a judge"


def test_a_worker_whose_canary_gets_out_stops_the_run_before_anything_is_graded(cluster, tmp_path):
    bwrap = cluster.folder / "bin" / "bwrap"
    bwrap.parent.mkdir()
    slowly = "sleep 2"  # the other two would have graded everybody meanwhile
    bwrap.write_text(
        f'#!/bin/sh\n{slowly}\nexec {shutil.which("bwrap")} --ro-bind /var/tmp /var/tmp "$@"\n'
    )
    bwrap.chmod(0o755)
    leaking = cluster.add("leaking", PATH=f"{bwrap.parent}:{os.environ['PATH']}")
    process = start_grading(cluster, hand_in(tmp_path / "submitted", CLASS), tmp_path / "out")
    output, _ = process.communicate(timeout=120)
    leaking.kill()
    while any(
        w["name"] == leaking.name
        for w in cluster.client.scheduler_info(n_workers=-1)["workers"].values()
    ):
        time.sleep(0.02)
    assert process.returncode == 2, output
    assert f"on the worker at {socket.gethostname()}, level namespaces leaks here" in output
    assert "read a planted secret" in output
    assert "Nothing was graded. Next: " in output
    assert not results_in(tmp_path / "out")
    logged = leaking.log.read_text()
    assert "RunSetup(plan=GradePlan(" in logged, "dask writes what it was asked to do into its log"
    assert course_secret(cluster.course).decode() not in logged


def test_a_worker_that_is_killed_loses_no_student_and_doubles_none(
    cluster: Cluster, tmp_path: Path
) -> None:
    students = [f"s{i}" for i in range(5)]
    out = tmp_path / "out"
    process = start_grading(
        cluster, hand_in(tmp_path / "submitted", dict.fromkeys(students, SLOW)), out
    )
    wait_until(lambda: results_in(out), process)
    victim = max(cluster.alive(), key=cluster.in_hand)
    assert cluster.in_hand(victim)
    family = victim.family()
    victim.kill()
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "5 submissions in" in output
    assert {s: r.score for s, r in results_in(out).items()} == dict.fromkeys(students, 4)
    noted = [json.loads(line)[0] for line in (out / NAME).read_text().splitlines() if line]
    assert sorted(noted) == [f"{s}/averages" for s in students]
    assert not psutil.wait_procs(family, timeout=60)[1], "its judge and its box ended with it"


def test_a_judge_that_is_killed_is_replaced(cluster: Cluster, tmp_path: Path) -> None:
    submissions = cluster.submissions(
        hand_in(tmp_path / "submitted", {"ada": SLOW, "ben": SLOW, "cat": SLOW})
    )
    graded = grade_on(cluster.address, cluster.plan(), submissions, {})
    scores = [next(graded).result.score]
    for worker in cluster.alive():
        judge = next(p for p in worker.family() if "spawn_main" in " ".join(p.cmdline()))
        judge.kill()
    scores += [g.result.score for g in graded]
    assert scores == [4, 4, 4]


def test_ctrl_c_waits_for_no_worker(cluster: Cluster, tmp_path: Path) -> None:
    submitted = hand_in(tmp_path / "submitted", {"ada": RIGHT, "ben": SLOW, "cat": SLOW})
    process = start_grading(cluster, submitted, tmp_path / "out")
    wait_until(lambda: results_in(tmp_path / "out"), process)
    for worker in cluster.alive():
        worker.process.send_signal(signal.SIGSTOP)
    try:
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        for worker in cluster.alive():
            worker.process.send_signal(signal.SIGCONT)
    assert process.returncode == 130, output
    assert "of 3 submissions are graded. Next: run the same command again" in output
    assert "Traceback" not in output


def test_what_breaks_inside_dask_is_no_traceback(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C closes the client while a reply is on its way, which dask then says through tornado's
    log or asyncio's.
    """
    script = (
        "import asyncio, sys, threading\nfrom manyheads.judge import dask_cluster as cluster\n"
        "done = threading.Semaphore(0)\nasync def broken():\n    done.release()\n"
        "    raise OSError('Stream is closed')\ndef leave():\n"
        "    asyncio.ensure_future(broken())\nclient = cluster._connect(sys.argv[1])\n"
        "for each in broken, leave:\n    client.loop.add_callback(each)\n    done.acquire()\n"
        "client.close()\n"
    )
    subprocess.run([sys.executable, "-c", script, cluster.address], check=True, cwd=REPOSITORY)
    assert not capfd.readouterr().err


def test_a_course_that_changes_is_graded_by_a_new_judge(cluster: Cluster, tmp_path: Path) -> None:
    def titles() -> list[str]:
        (graded,) = grade_on(cluster.address, cluster.plan(), submissions, {})
        return [check.title for check in graded.result.exercises[0].checks]

    submissions = cluster.submissions(hand_in(tmp_path / "submitted", {"ada": RIGHT}))
    assert "averages all that came so far" in titles()
    checks = cluster.course / CHECKS
    checks.write_text(
        checks.read_text().replace("averages all that came so far", "is the mean so far")
    )
    assert "is the mean so far" in titles()


def test_attempts_for_a_gpu_go_to_no_other_worker(cluster: Cluster, tmp_path: Path) -> None:
    submissions = cluster.submissions(hand_in(tmp_path / "submitted", {"ada": RIGHT}))
    with pytest.raises(
        CourseFault,
        match=r"^no worker at .* announces GPU=1\. Next: dask worker .*--resources GPU=1$",
    ):
        next(grade_on(cluster.address, cluster.plan(Device.CUDA), submissions, {}))


def test_a_cluster_that_is_lost_is_named(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submissions = cluster.submissions(
        hand_in(tmp_path / "submitted", dict.fromkeys("abcdefghijklmnopqrst", RIGHT))
    )
    first, second = (grade_on(cluster.address, cluster.plan(), submissions, {}) for _ in range(2))
    next(first)
    next(second)  # each has handed out four or eight, and has others left
    for worker in cluster.alive():
        worker.kill()
    with monkeypatch.context() as impatient:
        impatient.setattr("manyheads.judge.dask_cluster.PATIENCE_SECONDS", 0)
        with pytest.raises(WorkerLost, match=r"^no worker is left at .*\. Next: start some"):
            list(first)
    cluster.scheduler.kill()
    with pytest.raises(
        WorkerLost, match=r"^the dask scheduler at .* is gone\. Next: start it again"
    ):
        list(second)
