"""An attempt that ends slowly does not run beside the next. A stopped supervisor stands for a kernel that takes its time."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.box import connection, warm
from manyheads.box.level import Level, open_box
from manyheads.box.namespaces import NamespaceBox
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load
from tests.witness import below

LIMITS = Limits(memory_mib=512, files_mib=4, processes=16)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NamespaceBox]:
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


def test_the_next_attempt_waits_for_the_end_of_the_last(box: NamespaceBox) -> None:
    supervisor, old = end_of_one_that_never_comes(box)
    assert _is_there(old)
    threading.Timer(0.5, os.kill, (supervisor, signal.SIGCONT)).start()
    assert answers(box)
    assert not _is_there(old)
    assert supervisor_and_attempts(box)[0] == supervisor, "the box was replaced without need"


def test_where_it_never_ends_the_box_is_replaced(box: NamespaceBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "SLOW_END_SECONDS", 0.1)
    supervisor, _ = end_of_one_that_never_comes(box)
    assert answers(box)
    assert supervisor_and_attempts(box)[0] != supervisor


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
