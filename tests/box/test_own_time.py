"""Time is the attempt's own: what it runs or sleeps counts, and what it waits for a processor does not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.box import connection
from manyheads.box.connection import AttemptEnded, Connection, End
from manyheads.box.level import Box, Level, open_box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load
from manyheads.course import Course, Exercise
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.submission import AttemptSource
from tests.make import BY_SUMS as RIGHT

LIMITS = Limits(memory_mib=512)
BUSY, SECONDS = 8, 1.0
RUNS = """
def runs(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds:
        sum(range(1000))
    return 1.0
"""
SOURCE = f"""
import os, threading, time, torch
{RUNS}
def sleeps(seconds):
    time.sleep(seconds)
    return 1.0

def spins(*_):
    x = torch.ones(300, 300)
    while True:
        x @ x

def threads(*_):
    for _ in range(6):
        threading.Thread(target=spins, daemon=True).start()
    spins()

def children(*_):
    for _ in range(6):
        if os.fork() == 0:
            spins()
    spins()
"""
needs_schedstat = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel keeps no schedstat")


@pytest.fixture(scope="module")
def busy_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """A box on one CPU, with eight busy processes beside it, each in a session of its own as an attempt is."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    command = [sys.executable, "-c", "while True: pass"]
    try:
        with open_box(Level.NAMESPACES, LIMITS, tmp_path_factory.mktemp("hidden")) as opened:
            busy = [subprocess.Popen(command, start_new_session=True) for _ in range(BUSY)]
            try:
                yield opened
            finally:
                for process in busy:
                    process.kill()
                    process.wait()
    finally:
        os.sched_setaffinity(0, every)


@pytest.fixture
def attempt(busy_box: Box) -> Iterator[Connection]:
    made = busy_box.attempt(LIMITS)
    made.ask(Load(SOURCE, "attempt.py"), 20.0)
    made.spent.seconds = 0.0
    yield made
    made.close()


@pytest.mark.parametrize(("waited", "ran", "own"), [
    pytest.param(3.0, 1.0, 1.0, id="what it waited for a processor does not count"),
    pytest.param(0.0, 0.5, 4.0, id="what it slept does"),
    pytest.param(3.0, 2.5, 2.5, id="what its own threads ran meanwhile does"),
    pytest.param(3.5, 9.0, 4.0, id="no more than has passed"),
    pytest.param(None, 1.0, 4.0, id="all of it where the kernel says nothing"),
])  # fmt: skip
def test_of_four_seconds_so_many_are_its_own(tmp_path: Path, waited: float | None, ran: float, own: float) -> None:
    schedstat, stat = tmp_path / "schedstat", tmp_path / "stat"
    ticks = os.sysconf("SC_CLK_TCK")
    schedstat.write_text("7 1000000000 3")
    stat.write_text(f"1 (a) b) S {'0 ' * 10}{ticks} 0 0 0 20")
    time = connection.OwnTime([os.open(path, os.O_RDONLY) for path in (schedstat, stat)])
    schedstat.write_text("" if waited is None else f"8 {10**9 + int(waited * 1e9)} 4")
    stat.write_text(f"1 (a) b) S {'0 ' * 10}{ticks} {int(ran * ticks)} 0 0 20")
    assert time.of(4.0) == pytest.approx(own)
    time.close()


@needs_schedstat
def test_beside_eight_busy_processes_a_call_has_its_time(attempt: Connection) -> None:
    """It runs for a third of its time, and by the clock on the wall for longer than that."""
    assert attempt.ask(Call("runs", (SECONDS / 3,)), SECONDS).raised is None
    assert 0.3 * SECONDS < attempt.spent.seconds < SECONDS


@needs_schedstat
def test_the_same_code_has_the_same_points_there(tiny: Course, running_mean: Exercise, busy_box: Box) -> None:
    slow = f"import time\n{RUNS}\n" + RIGHT.replace("    return ", "    runs(0.05)\n    return ")
    limits = tiny.limits.model_copy(update={"seconds_per_call": 0.3, "seconds_per_attempt": 3.0})
    course = replace(tiny, file=tiny.file.model_copy(update={"limits": limits}))
    judge = Judge(course, busy_box, Settings(secret=b"secret", lines=False))
    result = judge.grade_attempt("a student", running_mean, AttemptSource("01_running_mean.py", slow))
    assert result.score == result.max_score, result.checks


@needs_schedstat
@pytest.mark.parametrize(("call", "says"), [
    pytest.param(Call("sleeps", (60.0,)), "within 1 seconds: is there an endless loop", id="who sleeps pays"),
    pytest.param(Call("spins"), "within [13] seconds", id="who runs pays, and waits no longer than the wall"),
    pytest.param(Call("threads"), "within [13] seconds", id="who is kept waiting by threads of its own"),
    pytest.param(Call("children"), "within [13] seconds", id="who is kept waiting by children of its own"),
])  # fmt: skip
def test_no_more_than_its_time(monkeypatch, attempt, call, says):
    monkeypatch.setattr(connection, "WALL", 3)
    with pytest.raises(AttemptEnded, match=says) as caught:
        attempt.ask(call, SECONDS)
    assert caught.value.end is End.TIMEOUT
