"""A box ends as a whole, whichever of its parts is killed, and the next attempt has a new one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

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


@pytest.mark.parametrize(
    "victim", [0, 1, 2, 3], ids=["the reaper", "bubblewrap outside", "bubblewrap inside", "the zygote"]
)
def test_all_of_a_box_ends_when_a_part_is_killed(box: NamespaceBox, victim: int) -> None:
    family, cgroup = below(box._reaper.pid), box._cgroup
    assert len(family) == 4, "the reaper, bubblewrap outside and inside, the zygote"
    os.kill(family[victim], signal.SIGKILL)
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
