"""A command, a judge, a worker or a scheduler that ends, in whatever way, leaves nothing: no
process, no cgroup, no mount.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import witness
from tests.witness import Witnessed, below, cgroups, loops, pids_with_text, start_with_witness

pytestmark = pytest.mark.journey

LOOP = "def running_mean(x):\n    while True:\n        pass\n"
SLEEP = "import time\n\n\ndef running_mean(x):\n    time.sleep(1000)\n"
COMMAND, JUDGE, REAPER = "manyheads grade", "multiprocessing.spawn", "manyheads.box.host_processes"
STANDALONE = "worker.fresh_interpreter"

SOAK = pytest.mark.soak  # each takes seconds: the suite has one of a kind, `make soak` has all
endings = pytest.mark.parametrize(
    "ending",
    [
        pytest.param(signal.SIGKILL, id="SIGKILL"),
        pytest.param(signal.SIGTERM, id="SIGTERM", marks=SOAK),
    ],
)
victims = pytest.mark.parametrize(
    "victim",
    [pytest.param(COMMAND, id="the command"), pytest.param(JUDGE, id="a judge", marks=SOAK)],
)


def a_class(folder: Path, source: str) -> Path:
    """Three students with the same attempt."""
    for student in ("ada", "ben", "cat"):
        path = folder / student / "averages" / "01_running_mean.py"
        path.parent.mkdir(parents=True)
        path.write_text(source)
    return folder


def patient(course: Path) -> Path:
    """The course, with limits above what any test waits: what ends, ends for another reason."""
    text = (course / "course.yaml").read_text()
    text = text.replace("seconds_per_call: 2", "seconds_per_call: 600")
    (course / "course.yaml").write_text(
        text.replace("seconds_per_attempt: 6", "seconds_per_attempt: 600")
    )
    return course


def command(course: Path, submitted: Path, *options: str) -> list[str]:
    """`course grade` with two judges."""
    arguments = [
        "grade",
        submitted,
        "--course",
        course,
        "--out",
        submitted.parent / "out",
        "--jobs",
        "2",
        *options,
    ]
    return [sys.executable, "-m", "manyheads", *map(str, arguments)]


def kill(run: Witnessed, victim: str, ending: signal.Signals) -> None:
    os.kill(run.pids_with_text(victim)[0], ending)


@SOAK
@endings
@victims
@pytest.mark.parametrize("beginning", [JUDGE, REAPER], ids=["a judge starts", "a box starts"])
def test_nothing_is_left_of_a_run_that_is_killed_while_it_starts(
    tiny_copy, tmp_path, beginning, victim, ending
):
    grading = command(tiny_copy, a_class(tmp_path / "submitted", LOOP))
    with start_with_witness(grading, tmp_path / "log") as run:
        run.wait_for(lambda: run.pids_with_text(beginning))
        kill(run, victim, ending)
        assert run.leftovers() == []


@pytest.mark.parametrize(
    ("source", "options", "at_work", "ending"),
    [
        pytest.param(LOOP, (), lambda run: loops(run.kin()), signal.SIGKILL, id="in a box"),
        pytest.param(
            LOOP,
            (),
            lambda run: loops(run.kin()),
            signal.SIGTERM,
            id="in a box, politely",
            marks=SOAK,
        ),
        pytest.param(
            SLEEP,
            ("--isolation", "process"),
            lambda run: run.pids_with_text(STANDALONE),
            signal.SIGKILL,
            id="in none",
        ),
    ],
)
def test_nothing_is_left_of_a_run_that_is_killed_at_work(
    tiny_copy, tmp_path, source, options, at_work, ending
):
    grading = command(patient(tiny_copy), a_class(tmp_path / "submitted", source), *options)
    with start_with_witness(grading, tmp_path / "log") as run:
        run.wait_for(lambda: at_work(run))
        kill(run, COMMAND, ending)
        assert run.leftovers() == []


@SOAK
@endings
@pytest.mark.parametrize(
    ("source", "options", "at_work"),
    [
        pytest.param(LOOP, (), lambda judge: loops(below(judge)), id="in a box"),
        pytest.param(
            SLEEP,
            ("--isolation", "process"),
            lambda judge: pids_with_text(below(judge), STANDALONE),
            id="without one",
        ),
    ],
)
def test_another_judge_takes_the_place_of_one_that_is_killed(
    tiny_copy, tmp_path, source, options, at_work, ending
):
    """What the killed one was grading is tried again."""
    grading = command(patient(tiny_copy), a_class(tmp_path / "submitted", source), *options)
    with start_with_witness(grading, tmp_path / "log") as run:
        run.wait_for(
            lambda: len([judge for judge in run.pids_with_text(JUDGE) if at_work(judge)]) == 2
        )
        killed, survivor = run.pids_with_text(JUDGE)
        of_the_killed = set(below(killed))
        os.kill(killed, ending)
        run.wait_for(lambda: not of_the_killed & set(run.kin()))
        assert [
            folder.name for folder in cgroups() if folder.name.split("-")[1] == str(killed)
        ] == []
        run.wait_for(
            lambda: [
                judge for judge in run.pids_with_text(JUDGE) if judge != survivor and at_work(judge)
            ]
        )
        kill(run, COMMAND, signal.SIGKILL)
        assert run.leftovers() == []


@SOAK
def test_nothing_is_left_where_all_that_shares_the_commands_session_is_killed_at_once(
    tiny_copy, tmp_path
):
    """As a job of a CI or of a batch system ends: nobody of them can remove a cgroup, but the
    reapers can.
    """
    grading = command(patient(tiny_copy), a_class(tmp_path / "submitted", LOOP))
    with start_with_witness(grading, tmp_path / "log") as run:
        run.wait_for(lambda: loops(run.kin()))
        for pid in [pid for pid in run.kin() if os.getsid(pid) == run.process.pid]:
            # who sees the end of another may be quicker than we are
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert run.leftovers() == []


def test_what_is_left_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "PATIENCE", 0.1)
    with start_with_witness(["sleep", "1000"], tmp_path / "log") as run:
        run.wait_for(
            lambda: [witness.command_line(pid).strip() for pid in run.kin()] == ["sleep 1000"]
        )
        assert run.leftovers()[1:] == ["sleep 1000"], "after the witness itself"


WORKER, SCHEDULER = "dask worker", "dask scheduler"
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
with open("said", "w") as said:
    subprocess.Popen([*grade, "--cluster", json.loads(address.read_text())["address"]], \
stdout=said, stderr=said)
"""
MOMENTS = {"a judge starts": JUDGE, "a box starts": REAPER, "an attempt loops": ""}
moments = pytest.mark.parametrize(
    "moment", [pytest.param(m, marks=[SOAK] if watched else []) for m, watched in MOMENTS.items()]
)


@contextmanager
def graded_on_a_cluster(course: Path, folder: Path, moment: str) -> Iterator[Witnessed]:
    """A class that a worker begins to grade."""
    grade = [
        "-m",
        "manyheads",
        "grade",
        a_class(folder / "submitted", LOOP),
        "--course",
        patient(course),
    ]
    begin = [
        sys.executable,
        "-c",
        START,
        sys.executable,
        *map(str, grade),
        "--out",
        str(folder / "out"),
    ]
    with start_with_witness(begin, folder / "log") as run:
        run.wait_for(
            lambda: run.pids_with_text(MOMENTS[moment]) if MOMENTS[moment] else loops(run.kin())
        )
        yield run


def end(run: Witnessed, name: str, ending: signal.Signals) -> None:
    for pid in run.pids_with_text(name):
        os.kill(pid, ending)


@moments
@endings
def test_a_worker_takes_its_judge_and_its_box_along(tiny_copy, tmp_path, moment, ending):
    with graded_on_a_cluster(tiny_copy, tmp_path, moment) as run:
        end(run, WORKER, ending)
        run.wait_for(lambda: not run.pids_with_text(JUDGE) and not run.pids_with_text(REAPER))
        end(run, COMMAND, signal.SIGKILL)  # which would wait for another worker
        end(run, SCHEDULER, signal.SIGKILL)
        assert run.leftovers() == []


@SOAK
@moments
def test_a_worker_ends_when_its_scheduler_has_gone(
    tiny_copy: Path, tmp_path: Path, moment: str
) -> None:
    with graded_on_a_cluster(tiny_copy, tmp_path, moment) as run:
        end(run, SCHEDULER, signal.SIGKILL)
        assert run.leftovers() == []
    last = (tmp_path / "said").read_text().splitlines()[-1]
    assert last.startswith("course: the dask scheduler at ")
    assert "is gone. Next: start it again" in last


def test_a_worker_that_is_told_to_end_after_its_scheduler_has_gone_ends(
    tiny_copy: Path, tmp_path: Path
) -> None:
    with graded_on_a_cluster(tiny_copy, tmp_path, "an attempt loops") as run:
        end(run, SCHEDULER, signal.SIGKILL)
        end(run, WORKER, signal.SIGTERM)
        assert run.leftovers() == []


@SOAK
def test_a_command_that_is_killed_leaves_a_worker_that_can_be_ended(
    tiny_copy: Path, tmp_path: Path
) -> None:
    with graded_on_a_cluster(tiny_copy, tmp_path, "an attempt loops") as run:
        end(run, COMMAND, signal.SIGKILL)
        run.wait_for(lambda: not run.pids_with_text(COMMAND))
        assert run.pids_with_text(WORKER), "the cluster is not the command's"
        end(run, WORKER, signal.SIGTERM)
        run.wait_for(lambda: not run.pids_with_text(JUDGE) and not run.pids_with_text(REAPER))
        end(run, SCHEDULER, signal.SIGTERM)
        assert run.leftovers() == []
