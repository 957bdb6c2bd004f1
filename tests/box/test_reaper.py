"""A box ends as a whole, whichever of its parts is killed, and the next attempt has a new one."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from manyheads.box import cgroup
from manyheads.box.namespaces import NamespaceBox
from manyheads.box.worker.limits import Limits
from tests.witness import below, command_line, parent_of

LIMITS = Limits(files_mib=4, processes=16)


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
