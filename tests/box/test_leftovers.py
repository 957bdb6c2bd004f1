"""What an earlier version left is named with the command that removes it, and a run that is at work is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.box import cgroup, leftovers
from manyheads.box.leftovers import Leftovers, find_leftovers
from manyheads.box.namespaces import NamespaceBox
from manyheads.box.procstat import pids
from manyheads.box.worker.limits import Limits
from tests.witness import command_line, parent_of

# A stand-in for a judge and its box: processes with their command lines.
BOX = "import time; time.sleep(1000)  # manyheads_worker"
JUDGE = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BOX!r}])  # multiprocessing.spawn"


def started_by(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "PYTHON": sys.executable, "JUDGE": JUDGE}  # not in its own command line
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    while not any(parent_of(parent_of(pid)) == process.pid for pid in pids()):
        time.sleep(0.01)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def orphan() -> Iterator[subprocess.Popen[bytes]]:
    """A judge below a process that is not Python, as init is not."""
    yield from started_by("sh", "-c", '"$PYTHON" -c "$JUDGE" & wait')


@pytest.fixture
def at_work() -> Iterator[subprocess.Popen[bytes]]:
    """A judge below a process of Python, as the command is."""
    yield from started_by(
        sys.executable,
        "-c",
        "import os, sys; os.spawnl(os.P_WAIT, sys.executable, sys.executable, '-c', os.environ['JUDGE'])",
    )


def judge_below(process: subprocess.Popen[bytes]) -> int:
    return next(pid for pid in pids() if parent_of(pid) == process.pid)


def test_a_judge_whose_command_has_gone_is_named_with_the_command_that_ends_it(
    orphan: subprocess.Popen[bytes],
) -> None:
    judge = judge_below(orphan)
    found = find_leftovers()
    assert judge in found.processes
    assert str(judge) in found.command.partition(" && ")[0].removeprefix("kill -9 ").split()
    assert "multiprocessing.spawn" in command_line(judge)


def test_a_judge_at_work_is_not(at_work: subprocess.Popen[bytes]) -> None:
    assert judge_below(at_work) not in find_leftovers().processes


def test_a_box_at_work_is_not(tmp_path: Path) -> None:
    with NamespaceBox(Limits(), tmp_path) as box:
        found = find_leftovers().processes
        assert box._reaper.pid not in found
        assert not {pid for pid in pids() if parent_of(pid) == box._reaper.pid} & set(found)


def test_an_empty_cgroup_is_removed_and_one_that_is_not_empty_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders of the test's own, for a cgroup can be made only by some."""
    monkeypatch.setattr(cgroup, "ROOT", tmp_path)
    monkeypatch.setattr(leftovers, "_SECONDS", 0)
    monkeypatch.setattr(leftovers, "pids", list)
    gone = subprocess.Popen(["true"])
    os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)  # ended, and not waited for: init may take its time
    empty, full, alive = (
        tmp_path / "memory" / f"manyheads-{n}" for n in (f"{gone.pid}-1", f"{gone.pid}-2", f"{os.getpid()}-3")
    )
    for folder in (empty, full / "child", alive):
        folder.mkdir(parents=True)
    assert find_leftovers() == Leftovers((), (full,))
    gone.wait()
    assert not empty.exists()
    assert alive.exists()


def test_processes_end_before_their_cgroup_is_removed() -> None:
    assert Leftovers((7, 9), (Path("/a"), Path("/b"))).command == "kill -9 7 9 && sleep 1 && rmdir /a /b"
