"""A box ends as a whole, whichever of its parts is killed, the next attempt has a new one, and none runs beside the last."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.box import cgroup, connection, warm
from manyheads.box.level import Level, open_box
from manyheads.box.namespaces import NamespaceBox
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load
from tests.witness import below, command_line, parent_of

LIMITS = Limits(memory_mib=512, files_mib=4, processes=16)


def living(family: list[int]) -> list[str]:
    return [command_line(pid) for pid in family if parent_of(pid)]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceBox]:
    """Whoever breaks it asks it for an attempt, and so leaves a new one to the next."""
    with NamespaceBox(LIMITS, tmp_path_factory.mktemp("hidden")) as opened:
        yield opened


PARTS = ["the reaper", "bubblewrap outside", "bubblewrap inside", "the zygote"]


@pytest.mark.parametrize("victim", PARTS)
def test_all_of_a_box_ends_when_a_part_is_killed(box: NamespaceBox, victim: str) -> None:
    family, cgroup = below(box._reaper.pid), box._cgroup
    assert len(family) == len(PARTS)
    os.kill(family[PARTS.index(victim)], signal.SIGKILL)
    while living(family):
        time.sleep(0.01)
    box.attempt(LIMITS).close()
    assert len(below(box._reaper.pid)) == 4
    assert not any(folder.exists() for folder in cgroup.folders)


def test_a_reaper_waits_for_the_judge_alone(box: NamespaceBox) -> None:
    """Ctrl-C and a polite end reach everybody at once; the reaper still has a cgroup to remove."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        box._reaper.send_signal(number)
    box.attempt(LIMITS).close()
    assert box._reaper.poll() is None
    assert os.getsid(box._reaper.pid) == box._reaper.pid


def test_of_the_cgroups_whose_judge_has_ended_the_empty_ones_are_removed(tmp_path, monkeypatch):
    """Folders of the test's own, for a cgroup can be made only by some."""
    monkeypatch.setattr(cgroup, "ROOT", tmp_path)
    gone = subprocess.Popen(["true"])
    os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)  # ended, and not waited for: init may take its time
    numbers = f"{gone.pid}-1", f"{gone.pid}-2", f"{os.getpid()}-3"
    empty, full, alive = (tmp_path / "memory" / f"manyheads-{each}" for each in numbers)
    for folder in (empty, full / "child", alive):
        folder.mkdir(parents=True)
    cgroup.remove_abandoned()
    gone.wait()
    assert [folder.exists() for folder in (empty, full, alive)] == [False, True, True]


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NamespaceBox]:
    """For an attempt that ends slowly. A stopped supervisor stands for a kernel that takes its time."""
    monkeypatch.setattr(connection, "GRACE", 0.0)
    with open_box(Level.NAMESPACES, LIMITS, tmp_path) as opened:
        assert isinstance(opened, NamespaceBox)
        yield opened


def supervisor_and_attempts(box: NamespaceBox) -> list[int]:
    """The reaper, bubblewrap, its init, the supervisor, then its attempts."""
    return below(box._reaper.pid)[3:]


def end_of_one_that_never_comes(box: NamespaceBox) -> tuple[int, int]:
    """Stop the supervisor, and then end an attempt. Returns the supervisor and the attempt."""
    attempt = box.attempt(LIMITS)
    attempt.ask(Load("", "attempt.py"), 20.0)
    supervisor, old = supervisor_and_attempts(box)
    os.kill(supervisor, signal.SIGSTOP)
    attempt.close()
    return supervisor, old


def answers(box: NamespaceBox) -> bool:
    attempt = box.attempt(LIMITS)
    assert attempt.ask(Load("def f(): return 1.0", "attempt.py"), 20.0).raised is None
    reply = attempt.ask(Call("f"), 20.0)
    attempt.close()
    return reply.raised is None


def test_the_next_attempt_waits_for_the_end_of_the_last(slow: NamespaceBox) -> None:
    supervisor, old = end_of_one_that_never_comes(slow)
    assert parent_of(old)
    threading.Timer(0.5, os.kill, (supervisor, signal.SIGCONT)).start()
    assert answers(slow)
    assert not parent_of(old)
    assert supervisor_and_attempts(slow)[0] == supervisor, "the box was replaced without need"


def test_where_it_never_ends_the_box_is_replaced(slow: NamespaceBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "SLOW_END_SECONDS", 0.1)
    supervisor, _ = end_of_one_that_never_comes(slow)
    assert answers(slow)
    assert supervisor_and_attempts(slow)[0] != supervisor
