"""A worker or a scheduler that ends, in whatever way and at whatever moment, leaves no judge and no box."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.judge.test_killed import JUDGE, LOOP, REAPER, SOAK, a_class, endings, patient
from tests.witness import Witnessed, loops, witnessed

pytestmark = pytest.mark.journey

WORKER, SCHEDULER, COMMAND = "dask worker", "dask scheduler", "manyheads grade"
START = """
import json, subprocess, sys, time
from pathlib import Path
dask, address = [sys.executable, "-m", "dask"], Path("scheduler.json")
grade = sys.argv[1:]
subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", address])
while not address.exists() or not address.read_text():
    time.sleep(0.02)
options = "--nthreads 1 --no-nanny --resources CPU=1 --no-dashboard --scheduler-file".split()
with open("worker", "w") as log:
    subprocess.Popen([*dask, "worker", *options, address], stderr=log)
while "Registered to" not in Path("worker").read_text():
    time.sleep(0.02)
with open("said", "w") as said:
    subprocess.Popen([*grade, "--cluster", json.loads(address.read_text())["address"]], stdout=said, stderr=said)
"""
MOMENTS = {"a judge starts": JUDGE, "a box starts": REAPER, "an attempt loops": ""}
moments = pytest.mark.parametrize(
    "moment", [pytest.param(m, marks=[SOAK] if watched else []) for m, watched in MOMENTS.items()]
)


@contextmanager
def graded_on_a_cluster(course: Path, folder: Path, moment: str) -> Iterator[Witnessed]:
    """A class that a worker begins to grade."""
    grade = ["-m", "manyheads", "grade", a_class(folder / "submitted", LOOP), "--course", patient(course)]
    begin = [sys.executable, "-c", START, sys.executable, *map(str, grade), "--out", str(folder / "out")]
    with witnessed(begin, folder / "log") as run:
        run.wait_for(lambda: run.named(MOMENTS[moment]) if MOMENTS[moment] else loops(run.kin()))
        yield run


def end(run: Witnessed, what: str, ending: signal.Signals) -> None:
    for pid in run.named(what):
        os.kill(pid, ending)


@moments
@endings
def test_a_worker_takes_its_judge_and_its_box_along(tiny_copy, tmp_path, moment, ending):
    with graded_on_a_cluster(tiny_copy, tmp_path, moment) as run:
        end(run, WORKER, ending)
        run.wait_for(lambda: not run.named(JUDGE) and not run.named(REAPER))
        end(run, COMMAND, signal.SIGKILL)  # which would wait for another worker
        end(run, SCHEDULER, signal.SIGKILL)
        assert run.left() == []


@SOAK
@moments
def test_a_worker_ends_when_its_scheduler_has_gone(tiny_copy: Path, tmp_path: Path, moment: str) -> None:
    with graded_on_a_cluster(tiny_copy, tmp_path, moment) as run:
        end(run, SCHEDULER, signal.SIGKILL)
        assert run.left() == []
    last = (tmp_path / "said").read_text().splitlines()[-1]
    assert last.startswith("course: the dask scheduler at ")
    assert "is gone. Next: start it again" in last


def test_a_worker_that_is_told_to_end_after_its_scheduler_has_gone_ends(tiny_copy: Path, tmp_path: Path) -> None:
    with graded_on_a_cluster(tiny_copy, tmp_path, "an attempt loops") as run:
        end(run, SCHEDULER, signal.SIGKILL)
        end(run, WORKER, signal.SIGTERM)
        assert run.left() == []


@SOAK
def test_a_command_that_is_killed_leaves_a_worker_that_can_be_ended(tiny_copy: Path, tmp_path: Path) -> None:
    with graded_on_a_cluster(tiny_copy, tmp_path, "an attempt loops") as run:
        end(run, COMMAND, signal.SIGKILL)
        run.wait_for(lambda: not run.named(COMMAND))
        assert run.named(WORKER), "the cluster is not the command's"
        end(run, WORKER, signal.SIGTERM)
        run.wait_for(lambda: not run.named(JUDGE) and not run.named(REAPER))
        end(run, SCHEDULER, signal.SIGTERM)
        assert run.left() == []
