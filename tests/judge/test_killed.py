"""A command or a judge that is killed at any moment leaves nothing: no process, no cgroup, no mount."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from tests import witness
from tests.witness import Witnessed, below, cgroups, loops, named, witnessed

pytestmark = pytest.mark.journey

LOOP = "def running_mean(x):\n    while True:\n        pass\n"
SLEEP = "import time\n\n\ndef running_mean(x):\n    time.sleep(1000)\n"
COMMAND, JUDGE, REAPER = "manyheads grade", "multiprocessing.spawn", "manyheads.box.reaper"
STANDALONE = "worker.standalone"

SOAK = pytest.mark.soak  # each takes seconds: the suite has one of a kind, `make soak` has all
endings = pytest.mark.parametrize(
    "ending", [pytest.param(signal.SIGKILL, id="SIGKILL"), pytest.param(signal.SIGTERM, id="SIGTERM", marks=SOAK)]
)
victims = pytest.mark.parametrize(
    "victim", [pytest.param(COMMAND, id="the command"), pytest.param(JUDGE, id="a judge", marks=SOAK)]
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
    (course / "course.yaml").write_text(text.replace("seconds_per_attempt: 6", "seconds_per_attempt: 600"))
    return course


def command(course: Path, submitted: Path, *options: str) -> list[str]:
    """`course grade` with two judges."""
    arguments = ["grade", submitted, "--course", course, "--out", submitted.parent / "out", "--jobs", "2", *options]
    return [sys.executable, "-m", "manyheads", *map(str, arguments)]


def kill(run: Witnessed, victim: str, ending: signal.Signals) -> None:
    os.kill(run.named(victim)[0], ending)


@SOAK
@endings
@victims
@pytest.mark.parametrize("beginning", [JUDGE, REAPER], ids=["a judge starts", "a box starts"])
def test_nothing_is_left_of_a_run_that_is_killed_while_it_starts(tiny_copy, tmp_path, beginning, victim, ending):
    grading = command(tiny_copy, a_class(tmp_path / "submitted", LOOP))
    with witnessed(grading, tmp_path / "log") as run:
        run.wait_for(lambda: run.named(beginning))
        kill(run, victim, ending)
        assert run.left() == []


@pytest.mark.parametrize(("source", "options", "at_work", "ending"), [
    pytest.param(LOOP, (), lambda run: loops(run.kin()), signal.SIGKILL, id="in a box"),
    pytest.param(LOOP, (), lambda run: loops(run.kin()), signal.SIGTERM, id="in a box, politely", marks=SOAK),
    pytest.param(SLEEP, ("--isolation", "process"), lambda run: run.named(STANDALONE), signal.SIGKILL, id="in none"),
])  # fmt: skip
def test_nothing_is_left_of_a_run_that_is_killed_at_work(tiny_copy, tmp_path, source, options, at_work, ending):
    grading = command(patient(tiny_copy), a_class(tmp_path / "submitted", source), *options)
    with witnessed(grading, tmp_path / "log") as run:
        run.wait_for(lambda: at_work(run))
        kill(run, COMMAND, ending)
        assert run.left() == []


@SOAK
@endings
@pytest.mark.parametrize(("source", "options", "at_work"), [
    pytest.param(LOOP, (), lambda judge: loops(below(judge)), id="in a box"),
    pytest.param(SLEEP, ("--isolation", "process"), lambda judge: named(below(judge), STANDALONE), id="without one"),
])  # fmt: skip
def test_another_judge_takes_the_place_of_one_that_is_killed(tiny_copy, tmp_path, source, options, at_work, ending):
    """What the killed one was grading is tried again."""
    grading = command(patient(tiny_copy), a_class(tmp_path / "submitted", source), *options)
    with witnessed(grading, tmp_path / "log") as run:
        run.wait_for(lambda: len([judge for judge in run.named(JUDGE) if at_work(judge)]) == 2)
        killed, other = run.named(JUDGE)
        of_the_killed = set(below(killed))
        os.kill(killed, ending)
        run.wait_for(lambda: not of_the_killed & set(run.kin()))
        assert [folder.name for folder in cgroups() if folder.name.split("-")[1] == str(killed)] == []
        run.wait_for(lambda: [judge for judge in run.named(JUDGE) if judge != other and at_work(judge)])
        kill(run, COMMAND, signal.SIGKILL)
        assert run.left() == []


@SOAK
def test_nothing_is_left_where_all_that_shares_the_commands_session_is_killed_at_once(tiny_copy, tmp_path):
    """As a job of a CI or of a batch system ends: nobody of them can remove a cgroup, but the reapers can."""
    grading = command(patient(tiny_copy), a_class(tmp_path / "submitted", LOOP))
    with witnessed(grading, tmp_path / "log") as run:
        run.wait_for(lambda: loops(run.kin()))
        for pid in [pid for pid in run.kin() if os.getsid(pid) == run.process.pid]:
            with contextlib.suppress(ProcessLookupError):  # who sees the end of another may be quicker than we are
                os.kill(pid, signal.SIGKILL)
        assert run.left() == []


def test_what_is_left_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "PATIENCE", 0.1)
    with witnessed(["sleep", "1000"], tmp_path / "log") as run:
        run.wait_for(lambda: [witness.command_line(pid).strip() for pid in run.kin()] == ["sleep 1000"])
        assert run.left()[1:] == ["sleep 1000"], "after the witness itself"
