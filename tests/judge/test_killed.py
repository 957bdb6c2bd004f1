"""A command, judge, worker or scheduler that ends in any way leaves nothing behind.

That means no process, no control group, and no mount.
"""

import contextlib
import os
import signal
import sys
from contextlib import contextmanager
from itertools import product

import pytest

from tests import witness
from tests.make import COURSE
from tests.witness import (
    cgroups,
    loops,
    pids_with_text,
    process_and_descendants,
    start_with_witness,
)

pytestmark = pytest.mark.journey

LOOP = "def running_mean(x):\n    while True:\n        pass\n"
SLEEP = "import time\n\n\ndef running_mean(x):\n    time.sleep(1000)\n"
COMMAND, JUDGE, REAPER = "manyheads grade", "multiprocessing.spawn", "manyheads.box.host_processes"
WORKER, SCHEDULER = "dask worker", "dask scheduler"
WITHOUT_BOX = ("--isolation", "process")

SOAK = pytest.mark.soak  # slow tests: the suite runs one of each kind, and `make soak` runs all
endings = pytest.mark.parametrize(
    "ending",
    [
        pytest.param(signal.SIGKILL, id="SIGKILL"),
        pytest.param(signal.SIGTERM, id="SIGTERM", marks=SOAK),
    ],
)


def attempts_without_box(pids):
    """Return the attempts without a box among these processes."""
    return pids_with_text(pids, "worker.fresh_interpreter")


@pytest.fixture
def grade_command(tiny_copy, tmp_path):
    """Return a function that hands in one text for three students and returns the command to grade.

    The limits are above what any test waits: a process that ends has another reason.
    """
    course = tiny_copy / "course.yaml"
    text = course.read_text().replace("seconds_per_call: 2", "seconds_per_call: 600")
    course.write_text(text.replace("seconds_per_attempt: 6", "seconds_per_attempt: 600"))

    def make_command(source, *options):
        for student in ("ada", "ben", "cat"):
            path = tmp_path / "submitted" / student / "averages" / "01_running_mean.py"
            path.parent.mkdir(parents=True)
            path.write_text(source)
        folders = (tmp_path / "submitted", "--course", tiny_copy, "--out", tmp_path / "out")
        return [*COURSE, "grade", *map(str, folders), *options]

    return make_command


def kill_processes(run, text, ending=signal.SIGKILL):
    """End the oldest command or judge, or all other processes with this text."""
    pids = run.pids_with_text(text)
    for pid in pids[:1] if text in (COMMAND, JUDGE) else pids:
        os.kill(pid, ending)


def judge_starts(run):
    """Return the judges. A moment has come as soon as its function returns any process."""
    return run.pids_with_text(JUDGE)


def box_starts(run):
    """Return the first processes of boxes."""
    return run.pids_with_text(REAPER)


def attempt_loops(run):
    """Return the attempts that are in an endless loop."""
    return loops(run.kin())


def attempt_sleeps(run):
    """Return the attempts that sleep, without a box."""
    return attempts_without_box(run.kin())


@pytest.mark.parametrize(
    ("moment", "victim", "ending"),
    [
        (attempt_loops, COMMAND, signal.SIGKILL),
        (attempt_sleeps, COMMAND, signal.SIGKILL),
        pytest.param(attempt_loops, COMMAND, signal.SIGTERM, marks=SOAK),
        *(
            pytest.param(*row, marks=SOAK)
            for row in product(
                (judge_starts, box_starts), (COMMAND, JUDGE), (signal.SIGKILL, signal.SIGTERM)
            )
        ),
    ],
)
def test_a_killed_run_leaves_nothing(grade_command, tmp_path, moment, victim, ending):
    in_box = moment is not attempt_sleeps
    command = grade_command(LOOP) if in_box else grade_command(SLEEP, *WITHOUT_BOX)
    with start_with_witness([*command, "--jobs", "2"], tmp_path / "log") as run:
        run.wait_for(lambda: moment(run))
        kill_processes(run, victim, ending)
        assert run.leftovers() == []


@SOAK
@endings
@pytest.mark.parametrize(
    ("source", "options", "at_work"),
    [(LOOP, (), loops), (SLEEP, WITHOUT_BOX, attempts_without_box)],
    ids=["in a box", "without a box"],
)
def test_a_killed_judge_is_replaced(grade_command, tmp_path, source, options, at_work, ending):
    """The new judge grades again the attempt that the killed one was grading."""
    command = grade_command(source, "--jobs", "2", *options)
    with start_with_witness(command, tmp_path / "log") as run:

        def working_judges():
            return [
                judge
                for judge in run.pids_with_text(JUDGE)
                if at_work(process_and_descendants(judge))
            ]

        run.wait_for(lambda: len(working_judges()) == 2)
        killed, survivor = run.pids_with_text(JUDGE)
        children = set(process_and_descendants(killed))
        os.kill(killed, ending)
        run.wait_for(lambda: not children & set(run.kin()))
        assert not [folder for folder in cgroups() if folder.name.split("-")[1] == str(killed)]
        run.wait_for(lambda: set(working_judges()) - {survivor})
        kill_processes(run, COMMAND)
        assert run.leftovers() == []


@SOAK
def test_a_killed_session_leaves_nothing(grade_command, tmp_path):
    """A CI or batch system ends a job like this: only the reapers can remove a control group."""
    with start_with_witness(grade_command(LOOP, "--jobs", "2"), tmp_path / "log") as run:
        run.wait_for(lambda: loops(run.kin()))
        for pid in [pid for pid in run.kin() if os.getsid(pid) == run.process.pid]:
            # a process that sees the end of another one may end before it is killed
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert run.leftovers() == []


def test_the_witness_lists_the_processes_that_are_left(tmp_path, monkeypatch):
    monkeypatch.setattr(witness, "PATIENCE", 0.1)
    with start_with_witness(["sleep", "1000"], tmp_path / "log") as run:
        run.wait_for(
            lambda: [witness.command_line(pid).strip() for pid in run.kin()] == ["sleep 1000"]
        )
        assert run.leftovers()[1:] == ["sleep 1000"], "after the witness itself"


START = """
import json, subprocess, sys, time
from pathlib import Path
dask, address = [sys.executable, "-m", "dask"], Path("scheduler.json")
grade = sys.argv[1:]
subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", \
"--scheduler-file", address])
while not address.exists() or not address.read_text():
    time.sleep(0.02)
options = "--nthreads 1 --no-nanny --resources CPU=1 --no-dashboard --scheduler-file".split()
with open("worker", "w") as log:
    subprocess.Popen([*dask, "worker", *options, address], stderr=log)
while "Registered to" not in Path("worker").read_text():
    time.sleep(0.02)
with open("output", "w") as output:
    subprocess.Popen([*grade, "--cluster", json.loads(address.read_text())["address"]], \
stdout=output, stderr=output)
"""
moments = pytest.mark.parametrize(
    "moment",
    [attempt_loops, *(pytest.param(m, marks=SOAK) for m in (judge_starts, box_starts))],
)


@pytest.fixture
def cluster_at_moment(grade_command, tmp_path):
    """Start a class on a cluster of one worker, and wait for a moment of its grading."""

    @contextmanager
    def cluster(moment=attempt_loops):
        command = [sys.executable, "-c", START, *grade_command(LOOP)]
        with start_with_witness(command, tmp_path / "log") as run:
            run.wait_for(lambda: moment(run))
            yield run

    return cluster


def wait_for_end_of_judge(run):
    """Wait until no judge and no box is left."""
    run.wait_for(lambda: not run.pids_with_text(JUDGE) and not run.pids_with_text(REAPER))


@moments
@endings
def test_the_end_of_a_worker_ends_its_judge_and_its_box(cluster_at_moment, moment, ending):
    with cluster_at_moment(moment) as run:
        kill_processes(run, WORKER, ending)
        wait_for_end_of_judge(run)
        kill_processes(run, COMMAND)  # which would wait for another worker
        kill_processes(run, SCHEDULER)
        assert run.leftovers() == []


@SOAK
@moments
def test_a_worker_ends_by_itself_after_its_scheduler(cluster_at_moment, tmp_path, moment):
    with cluster_at_moment(moment) as run:
        kill_processes(run, SCHEDULER)
        assert run.leftovers() == []
    last = (tmp_path / "output").read_text().splitlines()[-1]
    assert last.startswith("course: the dask scheduler at ")
    assert "is gone. Next: start it again" in last


def test_a_worker_without_a_scheduler_ends_on_sigterm(cluster_at_moment):
    with cluster_at_moment() as run:
        kill_processes(run, SCHEDULER)
        kill_processes(run, WORKER, signal.SIGTERM)
        assert run.leftovers() == []


@SOAK
def test_a_killed_command_leaves_a_worker_that_can_be_ended(cluster_at_moment):
    with cluster_at_moment() as run:
        kill_processes(run, COMMAND)
        run.wait_for(lambda: not run.pids_with_text(COMMAND))
        assert run.pids_with_text(WORKER), "the cluster does not belong to the command"
        kill_processes(run, WORKER, signal.SIGTERM)
        wait_for_end_of_judge(run)
        kill_processes(run, SCHEDULER, signal.SIGTERM)
        assert run.leftovers() == []
