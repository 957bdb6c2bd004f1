"""Limits of an attempt in a real box: memory, processes, files, statements and time."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from manyheads.box import connection, open_box, without_namespaces
from manyheads.box.connection import (
    ALL_REPLIES,
    MOST_SKIPPED,
    AttemptEnded,
    Box,
    Connection,
    End,
    Loaded,
    Spent,
    load,
)
from manyheads.box.host_processes import ZYGOTE_MIB, make_cgroup, plan_cgroup
from manyheads.box.level_and_device_names import Level
from manyheads.box.worker.limits import Limits, time_files
from manyheads.box.worker.messages import Call, Load
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.submission import Source
from tests.box.conftest import value_of
from tests.make import BY_SUMS as RIGHT

LIMITS = Limits(
    seconds_per_attempt=30.0,
    seconds_per_call=10.0,
    memory_mib=512,
    files_mib=4,
    processes=16,
    open_files=100,
    reply_mib=2,
)
COUNTING = """
import os, sys, threading, time, torch

def count(step, most):
    done = 0
    try:
        while done < most:
            step(done)
            done += 1
    except (OSError, RuntimeError, MemoryError):
        pass
    return float(done)

def take(mib):
    piece = torch.empty(mib << 20, dtype=torch.uint8)
    piece.fill_(1)
    return piece

def child(i):
    if os.fork() == 0:
        time.sleep(60)

def fill(folder):
    file = os.open(f"{folder}/filled", os.O_CREAT | os.O_WRONLY)
    return lambda i: os.write(file, bytes(1 << 20)) == 1 << 20 or os.write(file, b"x" * (1 << 20))
"""


@pytest.fixture(scope="module")
def limited_box(tmp_path_factory) -> Iterator[Box]:
    with open_box(Level.NAMESPACES, LIMITS, tmp_path_factory.mktemp("hidden")) as opened:
        yield opened


def run_body(limited_box: Box, body: str, limits: Limits = LIMITS) -> Any:
    """Return the result of `f()` with this body, which may use the helpers of COUNTING."""
    source = f"{COUNTING}\ndef f():\n{body}\n"
    return value_of(limited_box, limits, source, seconds=limits.seconds_per_call)


OPEN_FILES = (
    "    most = count(lambda i: os.open('/dev/null', 0), 500)\n    os.closerange(70, 100)\n"
    "    return most"
)
THREADS = """\
    done = threading.Event()
    started = count(lambda i: threading.Thread(target=done.wait).start(), 64)
    done.set()
    return started
"""
EMPTY_FILES = "    return count(lambda i: open(f'{}/{{i}}', 'w').close(), 5000)"
# The body of f(), which returns how much it got, and the least and the most that it may get.
AMOUNTS = {
    "memory, in MiB": (
        "    kept = []\n    return count(lambda i: kept.append(take(32)), 64) * 32",
        256,
        512,
    ),
    "processes": ("    return count(child, 64)", 8, 15),
    "threads, whose stacks and arenas are address space as well": (THREADS, 4, 15),
    "open files": (OPEN_FILES, 80, 100),
    "MiB in /tmp": ("    return count(fill('/tmp'), 64)", 3, 4),
    "MiB in /dev/shm": ("    return count(fill('/dev/shm'), 64)", 3, 4),
    "files in /tmp": (EMPTY_FILES.format("/tmp"), 900, 1024),
    "files in /dev/shm": (EMPTY_FILES.format("/dev/shm"), 900, 1024),
    "stdout goes nowhere": ("    print('x' * (64 << 20), flush=True)\n    return 1.0", 1, 1),
}


@pytest.mark.parametrize(("body", "min_amount", "max_amount"), AMOUNTS.values(), ids=AMOUNTS)
def test_the_amount_of_each_resource_is_limited(limited_box, body, min_amount, max_amount):
    assert min_amount <= run_body(limited_box, body) <= max_amount


def test_a_new_interpreter_gets_valid_code_for_any_device_type():
    class Device(StrEnum):
        CUDA = "cuda"

    compile(
        without_namespaces._interpreter_code(Limits().for_device(Device.CUDA)), "<started>", "exec"
    )


@pytest.mark.parametrize(
    ("dtype", "small_mib", "large_mib"), [("float64", 1, 3), ("float32", 1, 2)]
)
def test_a_reply_above_the_size_limit_is_refused(limited_box, dtype, small_mib, large_mib):
    """The limit is 2 MiB. A float32 reply counts twice, because the judge compares in float64."""
    with pytest.raises(AttemptEnded, match="2 MiB") as caught:
        run_body(limited_box, f"    return take({large_mib}).view(torch.{dtype})")
    assert caught.value.end is End.BAD_REPLY
    assert len(run_body(limited_box, f"    return take({small_mib}).view(torch.{dtype})")) > 1


@pytest.mark.parametrize(
    ("body", "limits", "end"),
    [
        ("    time.sleep(60)", Limits(seconds_per_call=0.3), End.TIMEOUT),
        (
            "    while True: pass",
            Limits(seconds_per_attempt=0.5, seconds_per_call=20.0),
            End.CRASHED,
        ),
    ],
    ids=["the judge ends a call", "the kernel ends an attempt"],
)
def test_an_attempt_ends_at_its_time_limit(limited_box, body, limits, end):
    with pytest.raises(AttemptEnded) as caught:
        run_body(limited_box, body, limits)
    assert caught.value.end is end


def test_all_processes_of_an_attempt_share_one_memory_limit(limited_box):
    """Eight children take 300 MiB each: less than the rlimit, but together more than the cgroup."""
    group = make_cgroup(plan_cgroup(LIMITS))
    group.remove()
    if not group.folders:
        pytest.skip(
            "this machine lets nobody make a cgroup: each process of an attempt is bounded by "
            "itself"
        )
    body = """
    readers = []
    for _ in range(8):
        reader, writer = os.pipe()
        if os.fork() == 0:
            kept = take(300)
            os.write(writer, b"x")
            time.sleep(60)
        os.close(writer)
        readers.append(reader)
    for reader in readers:
        os.read(reader, 1)  # until it holds its share, or is gone
    gone = 0
    for _ in range(20):  # a process shuts its pipe a moment before it is gone
        while gone < 8 and os.waitpid(-1, os.WNOHANG)[0]:
            gone += 1
        time.sleep(0.05)
    return 8.0 - gone
"""
    survivors = 0.0
    with contextlib.suppress(AttemptEnded):  # the kernel may end the attempt itself
        survivors = run_body(limited_box, body)
    assert survivors * 300 <= LIMITS.memory_mib + ZYGOTE_MIB


STATEMENT_LIMITS = Limits(seconds_per_call=0.5, seconds_per_attempt=30.0)
BELOW = "def below():\n    return 1.0\n"


def load_source(box: Box, source: str, limits: Limits = STATEMENT_LIMITS, **options: Any) -> Loaded:
    """Load the source as an attempt, and call its function `below` if it has one."""
    process = load(box, limits, Load(source, "a.py", **options))
    if BELOW in source:
        reply = process.connection.ask(Call("below"), 5.0)
        assert reply.raised is None, reply.raised
    process.connection.close()
    return process


def ends_of(process: Loaded) -> list[tuple[int, End | None]]:
    """Return the line of each statement that did not complete, and how it ended its process."""
    return [(statement.line, statement.ended) for statement in process.stopped]


DEAF_LOOP = (
    "while True:\n    try:\n        while True:\n            pass\n"
    "    except BaseException:\n        pass"
)


@pytest.mark.parametrize(
    ("statement_source", "ended"),
    [
        ("import time; time.sleep(60)", End.TIMEOUT),
        (DEAF_LOOP, End.TIMEOUT),
        ("sum(range(10**12))", End.TIMEOUT),
        ("import os; os._exit(0)", End.CRASHED),
        ("import ctypes; ctypes.string_at(0)", End.CRASHED),
    ],
)
def test_statements_after_one_that_ends_the_process_still_run(box, statement_source, ended):
    assert ends_of(load_source(box, f"above = 1\n{statement_source}\n{BELOW}")) == [(2, ended)]


def test_statements_that_end_the_process_are_skipped_and_reported(
    box,
):
    source = f"import os\nos._exit(1)\nraise KeyError\nos._exit(2)\n{BELOW}oops\n"
    process = load_source(box, source)
    assert ends_of(process) == [(2, End.CRASHED), (3, None), (4, End.CRASHED), (7, None)]
    assert process.skipped == (1, 3)
    reloaded = load_source(box, source, skipped=process.skipped)
    assert ends_of(reloaded) == [(3, None), (7, None)], "both are skipped from the start"


def test_slow_statements_take_at_most_twice_the_time_of_a_call(box):
    source = "import time\n" + "time.sleep(60)\n" * 3
    process = load_source(box, source, Limits(seconds_per_call=2.0))
    assert [statement.seconds for statement in process.stopped] == [1.0, 0.5, 0.5]


WRITES_AN_ANSWER = """
import os
for fd in range(64, 70):
    try:
        os.write(fd, bytes(8))
    except OSError:
        pass
"""


@pytest.mark.parametrize(
    ("source", "limits", "end"),
    [
        ("import os\n" + "os._exit(1)\n" * (MOST_SKIPPED + 1), STATEMENT_LIMITS, End.CRASHED),
        (
            "import time\n" + "time.sleep(60)\n" * 5,
            Limits(seconds_per_call=0.6, seconds_per_attempt=0.7),
            End.TIMEOUT,
        ),
        (WRITES_AN_ANSWER, STATEMENT_LIMITS, End.BAD_REPLY),
    ],
    ids=["too many statements end the process", "its time is up", "it writes a reply itself"],
)
def test_loading_gives_up_after_too_many_failures(box, source, limits, end):
    with pytest.raises(AttemptEnded) as caught:
        load_source(box, source + BELOW, limits)
    assert caught.value.end is end


def test_time_and_replies_of_all_processes_are_added_up(box):
    spent = Spent()
    process = load(
        box,
        STATEMENT_LIMITS,
        Load("import os, time\ntime.sleep(0.3)\nos._exit(1)\n", "a.py"),
        spent=spent,
    )
    process.connection.close()
    assert spent.seconds > 0.85  # three processes slept for 0.3 s
    assert spent.received > 0
    spent.received = ALL_REPLIES * STATEMENT_LIMITS.reply_mib << 20
    with pytest.raises(AttemptEnded, match=r"all its answers together are larger than 128 MiB\."):
        load(box, STATEMENT_LIMITS, Load("x = 1\n", "a.py"), spent=spent)


# For each source: the line of each statement that raised, and the line of its exception.
LINES = {
    "def f(x):\n    raise ValueError(x)\n\n@str\n@f\ndef g():\n    pass\n\nf(\n    2)\n": [
        (4, 2),
        (9, 2),
    ],
    "exec(compile('\\n' * 90000 + 'raise KeyError(1)', 'a.py', 'exec'))\n": [(1, None)],
}


@pytest.mark.parametrize(
    ("source", "lines"),
    LINES.items(),
    ids=["the line at which a statement begins", "no line beyond the file"],
)
def test_a_statement_that_raises_is_reported_with_its_lines(box, source, lines):
    process = load_source(box, source)
    assert [(statement.line, statement.raised.line) for statement in process.stopped] == lines


def test_no_statement_of_a_file_with_a_syntax_error_runs(box):
    process = load_source(box, "import os\nos._exit(1)\ndef (:\n")
    assert (process.raised.type, process.raised.line, process.stopped) == ("SyntaxError", 3, ())


TIME_LIMITS = Limits(memory_mib=512)
BUSY_PROCESSES, SECONDS = 8, 1.0  # SECONDS is the time limit of a call
RUNS = """
def runs(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds:
        sum(range(1000))
    return 1.0
"""
BUSY_ATTEMPT = f"""
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
needs_schedstat = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="this kernel keeps no schedstat"
)


@pytest.fixture(scope="module")
def busy_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """Yield a box that shares one CPU with eight busy processes, each in its own session."""
    all_cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_cpus)})
    command = [sys.executable, "-c", "while True: pass"]
    try:
        with open_box(Level.NAMESPACES, TIME_LIMITS, tmp_path_factory.mktemp("hidden")) as opened:
            busy = [
                subprocess.Popen(command, start_new_session=True) for _ in range(BUSY_PROCESSES)
            ]
            try:
                yield opened
            finally:
                for process in busy:
                    process.kill()
                    process.wait()
    finally:
        os.sched_setaffinity(0, all_cpus)


@pytest.fixture
def busy_attempt(busy_box: Box) -> Iterator[Connection]:
    attempt = busy_box.attempt(TIME_LIMITS)
    attempt.ask(Load(BUSY_ATTEMPT, "attempt.py"), 20.0)
    attempt.spent.seconds = 0.0
    yield attempt
    attempt.close()


@pytest.mark.parametrize(
    ("waiting_seconds", "running_seconds", "own_seconds_expected"),
    [(3.0, 1.0, 1.0), (0.0, 0.5, 4.0), (3.0, 2.5, 2.5), (3.5, 9.0, 4.0), (None, 1.0, 4.0)],
    ids=[
        "the time that it waited for a processor does not count",
        "the time that it slept counts",
        "the time that its own threads ran meanwhile counts",
        "no more counts than has passed",
        "all of it counts if the kernel keeps no record",
    ],
)
def test_which_of_four_seconds_count_as_the_attempts_own(
    tmp_path, waiting_seconds, running_seconds, own_seconds_expected
):
    schedstat, stat = tmp_path / "schedstat", tmp_path / "stat"
    ticks = os.sysconf("SC_CLK_TCK")
    schedstat.write_text("7 1000000000 3")
    stat.write_text(f"1 (a) b) S {'0 ' * 10}{ticks} 0 0 0 20")
    time = connection.OwnTime([os.open(path, os.O_RDONLY) for path in (schedstat, stat)])
    schedstat.write_text(
        "" if waiting_seconds is None else f"8 {10**9 + int(waiting_seconds * 1e9)} 4"
    )
    stat.write_text(f"1 (a) b) S {'0 ' * 10}{ticks} {int(running_seconds * ticks)} 0 0 20")
    assert time.own_seconds(4.0) == pytest.approx(own_seconds_expected)
    time.close()


@needs_schedstat
def test_time_files_are_closed_if_one_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    open_file, opened = os.open, list[int]()

    def open_all_but_stat(path: str, flags: int) -> int:
        if path.endswith("/stat"):
            raise FileNotFoundError(path)
        opened.append(open_file(path, flags))
        return opened[-1]

    monkeypatch.setattr(os, "open", open_all_but_stat)
    assert time_files(os.getpid()) == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


@needs_schedstat
def test_a_call_has_its_full_time_beside_eight_busy_processes(busy_attempt):
    """The call computes for a third of its limit, which takes much longer on a wall clock."""
    assert busy_attempt.ask(Call("runs", (SECONDS / 3,)), SECONDS).raised is None
    assert 0.3 * SECONDS < busy_attempt.spent.seconds < SECONDS


@needs_schedstat
def test_a_slow_correct_attempt_has_full_marks_on_a_busy_cpu(tiny, running_mean, busy_box):
    slow = f"import time\n{RUNS}\n" + RIGHT.replace("    return ", "    runs(0.05)\n    return ")
    limits = tiny.limits.model_copy(update={"seconds_per_call": 0.3, "seconds_per_attempt": 3.0})
    course = replace(tiny, file=tiny.file.model_copy(update={"limits": limits}))
    judge = Judge(course, busy_box, Settings(secret=b"secret", lines=False))
    result = judge.grade_attempt("a student", running_mean, Source("01_running_mean.py", slow))
    assert result.score == result.max_score, result.checks


@needs_schedstat
@pytest.mark.parametrize(
    ("call", "message_pattern"),
    [
        (Call("sleeps", (60.0,)), "within 1 seconds: is there an endless loop"),
        (Call("spins"), "within [13] seconds"),
        (Call("threads"), "within [13] seconds"),
        (Call("children"), "within [13] seconds"),
    ],
    ids=["it sleeps", "it runs", "its own threads keep it waiting", "its own children do"],
)
def test_no_attempt_runs_longer_than_its_limit(monkeypatch, busy_attempt, call, message_pattern):
    monkeypatch.setattr(connection, "WALL", 3)
    with pytest.raises(AttemptEnded, match=message_pattern) as caught:
        busy_attempt.ask(call, SECONDS)
    assert caught.value.end is End.TIMEOUT
