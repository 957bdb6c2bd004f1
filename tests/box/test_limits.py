"""Limits of an attempt, met by real ones: of memory, processes and files, of the parts that it
loads, and of time that is its own.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

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
    Stopped,
    load,
)
from manyheads.box.host_processes import ZYGOTE_MIB, make_cgroup, plan_cgroup
from manyheads.box.level_and_device_names import Level
from manyheads.box.worker.limits import Limits, time_files
from manyheads.box.worker.messages import Call, Load
from manyheads.course import Course, Exercise
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.submission import Source
from tests.make import BY_SUMS as RIGHT
from tests.make import replies

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


def measured_count(limited_box: Box, body: str, limits: Limits = LIMITS) -> float:
    source = f"{COUNTING}\ndef f():\n{body}\n"
    (reply,) = replies(limited_box, limits, source, Call("f"), seconds=limits.seconds_per_call)
    assert reply.raised is None, reply.raised
    return reply.outputs[0].tensor.item()


OPENED = (
    "    most = count(lambda i: os.open('/dev/null', 0), 500)\n    os.closerange(70, 100)\n"
    "    return most"
)
STARTED = "started = count(lambda i: threading.Thread(target=done.wait).start(), 64)"


@pytest.mark.parametrize(
    ("body", "least", "most"),
    [
        pytest.param(
            "    kept = []\n    return count(lambda i: kept.append(take(32)), 64) * 32",
            256,
            512,
            id="memory, in MiB",
        ),
        pytest.param("    return count(child, 64)", 8, 15, id="processes"),
        pytest.param(
            f"    done = threading.Event()\n    {STARTED}\n    done.set()\n    return started",
            4,
            15,
            id="threads",
        ),  # whose stacks and arenas are address space as well
        pytest.param(OPENED, 80, 100, id="open files"),
        pytest.param("    return count(fill('/tmp'), 64)", 3, 4, id="MiB in /tmp"),
        pytest.param("    return count(fill('/dev/shm'), 64)", 3, 4, id="MiB in /dev/shm"),
        pytest.param(
            "    return count(lambda i: open(f'/tmp/{i}', 'w').close(), 5000)",
            900,
            1024,
            id="files in /tmp",
        ),
        pytest.param(
            "    return count(lambda i: open(f'/dev/shm/{i}', 'w').close(), 5000)",
            900,
            1024,
            id="files in /dev/shm",
        ),
        pytest.param(
            "    print('x' * (64 << 20), flush=True)\n    return 1.0",
            1,
            1,
            id="stdout goes nowhere",
        ),
    ],
)
def test_an_attempt_gets_so_much_and_no_more(limited_box, body, least, most):
    assert least <= measured_count(limited_box, body) <= most


def test_a_new_interpreter_can_read_the_limits_whatever_named_the_device():
    class Device(StrEnum):
        CUDA = "cuda"

    compile(
        without_namespaces._interpreter_code(Limits().for_device(Device.CUDA)), "<started>", "exec"
    )


@pytest.mark.parametrize(("dtype", "least", "most"), [("float64", 1, 3), ("float32", 1, 2)])
def test_a_reply_just_below_its_limit_is_read_and_one_above_it_is_not(
    limited_box, dtype, least, most
):
    """Of 2 MiB: in float32 it counts twice, as it is compared."""
    connection = limited_box.attempt(LIMITS)
    try:
        connection.ask(
            Load(
                f"{COUNTING}\ndef f(mib):\n    return take(mib).view(torch.{dtype})\n", "attempt.py"
            ),
            10.0,
        )
        read = connection.ask(Call("f", (least,)), 10.0).outputs[0].tensor
        assert read.nbytes == least << 20
        with pytest.raises(AttemptEnded, match="2 MiB") as caught:
            connection.ask(Call("f", (most,)), 10.0)
    finally:
        connection.close()
    assert caught.value.end is End.BAD_REPLY


@pytest.mark.parametrize(
    ("body", "limits", "end"),
    [
        pytest.param(
            "    time.sleep(60)",
            Limits(seconds_per_call=0.3),
            End.TIMEOUT,
            id="of a call by the judge's clock",
        ),
        pytest.param(
            "    while True: pass",
            Limits(seconds_per_attempt=0.5, seconds_per_call=20.0),
            End.CRASHED,
            id="of an attempt by the kernel's, the second belt",
        ),
    ],
)
def test_its_time_ends(limited_box, body, limits, end):
    with pytest.raises(AttemptEnded) as caught:
        measured_count(limited_box, body, limits)
    assert caught.value.end is end


def test_all_processes_of_an_attempt_share_one_bound_of_memory(limited_box):
    """Eight children of 300 MiB each: every one within its rlimit, all together beyond the box's
    cgroup.
    """
    group = make_cgroup(plan_cgroup(LIMITS))
    group.remove()
    if not group.folders:
        pytest.skip(
            "this machine lets nobody make a cgroup: each process of an attempt is bounded by "
            "itself"
        )
    body = """
    told = []
    for _ in range(8):
        reader, writer = os.pipe()
        if os.fork() == 0:
            kept = take(300)
            os.write(writer, b"x")
            time.sleep(60)
        os.close(writer)
        told.append(reader)
    for reader in told:
        os.read(reader, 1)  # until it holds its share, or is gone
    gone = 0
    for _ in range(20):  # a process shuts its pipe a moment before it is gone
        while gone < 8 and os.waitpid(-1, os.WNOHANG)[0]:
            gone += 1
        time.sleep(0.05)
    return 8.0 - gone
"""
    survivors = 0.0
    with contextlib.suppress(AttemptEnded):  # where the kernel chose to end the attempt itself
        survivors = measured_count(limited_box, body)
    assert survivors * 300 <= LIMITS.memory_mib + ZYGOTE_MIB


OF_PARTS = Limits(seconds_per_call=1.0, seconds_per_attempt=30.0)
BELOW = "def below():\n    return 1.0\n"


@contextmanager
def load_source(
    box: Box, source: str, limits: Limits = OF_PARTS, **options: tuple[int, ...]
) -> Iterator[Loaded]:
    process = load(box, limits, Load(source, "a.py", **options))
    try:
        yield process
    finally:
        process.connection.close()


def number_of(process: Loaded, name: str) -> float:
    reply = process.connection.ask(Call(name), 5.0)
    assert reply.raised is None, reply.raised
    (output,) = reply.outputs
    return float(output.tensor)


def ends_of(process: Loaded) -> list[tuple[int, End | None]]:
    return [(statement.line, statement.ended) for statement in process.stopped]


@pytest.mark.parametrize(
    ("part", "ended"),
    [
        pytest.param("import time; time.sleep(60)", End.TIMEOUT, id="a sleep"),
        pytest.param("while True:\n    pass", End.TIMEOUT, id="a loop without end"),
        pytest.param(
            (
                "while True:\n    try:\n        while True:\n            pass\n"
                "    except BaseException:\n        pass"
            ),
            End.TIMEOUT,
            id="a loop that hears nothing",
        ),
        pytest.param("sum(range(10**12))", End.TIMEOUT, id="one long step of the interpreter"),
        pytest.param("import os; os._exit(0)", End.CRASHED, id="an end of the process"),
        pytest.param(
            "import ctypes; ctypes.string_at(0)", End.CRASHED, id="a crash in native code"
        ),
    ],
)
def test_what_stands_below_a_part_that_ends_the_process_runs(
    box: Box, part: str, ended: End
) -> None:
    with load_source(box, f"above = 1\n{part}\n{BELOW}") as process:
        assert number_of(process, "below") == 1.0
        assert ends_of(process) == [(2, ended)]


def test_each_part_that_ends_the_process_is_left_out_and_told_in_the_order_of_lines(
    box: Box,
) -> None:
    source = f"import os\nos._exit(1)\nraise KeyError\nos._exit(2)\n{BELOW}oops\n"
    with load_source(box, source) as process:
        assert number_of(process, "below") == 1.0
        assert ends_of(process) == [(2, End.CRASHED), (3, None), (4, End.CRASHED), (7, None)]
        assert process.skipped == (1, 3)


def test_the_next_process_leaves_them_out_at_once(box: Box) -> None:
    with load_source(box, f"import os\nos._exit(1)\n{BELOW}", skipped=(1,)) as process:
        assert number_of(process, "below") == 1.0
        assert process.stopped == ()


@pytest.mark.parametrize(("per_call", "seconds"), [(1.0, [0.5, 0.5, 0.5]), (4.0, [2.0, 1.0, 0.5])])
def test_all_parts_that_are_too_slow_take_twice_the_time_of_a_call_at_most(
    box, per_call, seconds
) -> None:
    with load_source(
        box, "import time\n" + "time.sleep(60)\n" * 3, Limits(seconds_per_call=per_call)
    ) as process:
        assert [statement.seconds for statement in process.stopped] == seconds


@pytest.mark.parametrize(
    ("source", "limits", "end", "says"),
    [
        pytest.param(
            "import os\n" + "os._exit(1)\n" * (MOST_SKIPPED + 1) + BELOW,
            OF_PARTS,
            End.CRASHED,
            "exit status 1",
            id="of which many parts end the process",
        ),
        pytest.param(
            "import time\n" + "time.sleep(60)\n" * 5,
            Limits(seconds_per_call=0.6, seconds_per_attempt=0.7),
            End.TIMEOUT,
            None,
            id="whose time is up",
        ),
        pytest.param(
            "import os\nfor fd in range(64, 70):\n    try:\n        os.write(fd, bytes(8))\n"
            "    except OSError:\n        pass\n" + BELOW,
            OF_PARTS,
            End.BAD_REPLY,
            None,
            id="that answers in the judge's place",
        ),
    ],
)
def test_of_a_file_nothing_more_is_tried(
    box: Box, source: str, limits: Limits, end: End, says: str | None
) -> None:
    with pytest.raises(AttemptEnded, match=says) as caught:
        load(box, limits, Load(source, "a.py"))
    assert caught.value.end is end


def test_all_that_its_processes_take_is_paid_for(box: Box) -> None:
    spent = Spent()
    process = load(
        box, OF_PARTS, Load("import os, time\ntime.sleep(0.3)\nos._exit(1)\n", "a.py"), spent=spent
    )
    process.connection.close()
    assert spent.seconds > 0.85  # three of them slept
    assert spent.received > 0
    spent.received = ALL_REPLIES * OF_PARTS.reply_mib << 20
    with pytest.raises(AttemptEnded, match=r"all its answers together are larger than 128 MiB\."):
        load(box, OF_PARTS, Load("x = 1\n", "a.py"), spent=spent)


def test_what_a_part_raises_is_told_with_the_line_at_which_the_part_begins(box: Box) -> None:
    source = "def f(x):\n    raise ValueError(x)\n\n@str\n@f\ndef g():\n    pass\n\nf(\n    2)\n"
    with load_source(box, source) as process:
        lines = [
            (statement.line, statement.raised.line)
            for statement in process.stopped
            if statement.raised
        ]
    assert lines == [(4, 2), (9, 2)]


def test_text_that_is_not_python_raises_and_runs_nothing(box: Box) -> None:
    with load_source(box, "import os\nos._exit(1)\ndef (:\n") as process:
        assert (process.raised.type, process.raised.line, process.stopped) == ("SyntaxError", 3, ())


def test_lines_beyond_the_file_are_not_taken_over(box: Box) -> None:
    with load_source(
        box, "exec(compile('\\n' * 90000 + 'raise KeyError(1)', 'a.py', 'exec'))\n"
    ) as process:
        (stopped,) = process.stopped
    assert stopped == Stopped(1, stopped.raised)
    assert stopped.raised.line is None


OF_TIME = Limits(memory_mib=512)
BUSY, SECONDS = 8, 1.0
RUNS = """
def runs(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds:
        sum(range(1000))
    return 1.0
"""
WORKS = f"""
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
    """A box on one CPU, with eight busy processes beside it, each in a session of its own as an
    attempt is.
    """
    all_cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_cpus)})
    command = [sys.executable, "-c", "while True: pass"]
    try:
        with open_box(Level.NAMESPACES, OF_TIME, tmp_path_factory.mktemp("hidden")) as opened:
            busy = [subprocess.Popen(command, start_new_session=True) for _ in range(BUSY)]
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
    attempt = busy_box.attempt(OF_TIME)
    attempt.ask(Load(WORKS, "attempt.py"), 20.0)
    attempt.spent.seconds = 0.0
    yield attempt
    attempt.close()


@pytest.mark.parametrize(
    ("waited", "ran", "own"),
    [
        pytest.param(3.0, 1.0, 1.0, id="what it waited for a processor does not count"),
        pytest.param(0.0, 0.5, 4.0, id="what it slept does"),
        pytest.param(3.0, 2.5, 2.5, id="what its own threads ran meanwhile does"),
        pytest.param(3.5, 9.0, 4.0, id="no more than has passed"),
        pytest.param(None, 1.0, 4.0, id="all of it where the kernel says nothing"),
    ],
)
def test_of_four_seconds_so_many_are_its_own(
    tmp_path: Path, waited: float | None, ran: float, own: float
) -> None:
    schedstat, stat = tmp_path / "schedstat", tmp_path / "stat"
    ticks = os.sysconf("SC_CLK_TCK")
    schedstat.write_text("7 1000000000 3")
    stat.write_text(f"1 (a) b) S {'0 ' * 10}{ticks} 0 0 0 20")
    time = connection.OwnTime([os.open(path, os.O_RDONLY) for path in (schedstat, stat)])
    schedstat.write_text("" if waited is None else f"8 {10**9 + int(waited * 1e9)} 4")
    stat.write_text(f"1 (a) b) S {'0 ' * 10}{ticks} {int(ran * ticks)} 0 0 20")
    assert time.own_seconds(4.0) == pytest.approx(own)
    time.close()


@needs_schedstat
def test_no_file_of_the_kernel_stays_open_if_the_other_is_missing(
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
def test_beside_eight_busy_processes_a_call_has_its_time(busy_attempt: Connection) -> None:
    """It runs for a third of its time, and by the clock on the wall for longer than that."""
    assert busy_attempt.ask(Call("runs", (SECONDS / 3,)), SECONDS).raised is None
    assert 0.3 * SECONDS < busy_attempt.spent.seconds < SECONDS


@needs_schedstat
def test_the_same_code_has_the_same_points_there(
    tiny: Course, running_mean: Exercise, busy_box: Box
) -> None:
    slow = f"import time\n{RUNS}\n" + RIGHT.replace("    return ", "    runs(0.05)\n    return ")
    limits = tiny.limits.model_copy(update={"seconds_per_call": 0.3, "seconds_per_attempt": 3.0})
    course = replace(tiny, file=tiny.file.model_copy(update={"limits": limits}))
    judge = Judge(course, busy_box, Settings(secret=b"secret", lines=False))
    result = judge.grade_attempt("a student", running_mean, Source("01_running_mean.py", slow))
    assert result.score == result.max_score, result.checks


@needs_schedstat
@pytest.mark.parametrize(
    ("call", "says"),
    [
        pytest.param(
            Call("sleeps", (60.0,)),
            "within 1 seconds: is there an endless loop",
            id="who sleeps pays",
        ),
        pytest.param(
            Call("spins"),
            "within [13] seconds",
            id="who runs pays, and waits no longer than the wall",
        ),
        pytest.param(
            Call("threads"), "within [13] seconds", id="who is kept waiting by threads of its own"
        ),
        pytest.param(
            Call("children"), "within [13] seconds", id="who is kept waiting by children of its own"
        ),
    ],
)
def test_no_more_than_its_time(monkeypatch, busy_attempt, call, says):
    monkeypatch.setattr(connection, "WALL", 3)
    with pytest.raises(AttemptEnded, match=says) as caught:
        busy_attempt.ask(call, SECONDS)
    assert caught.value.end is End.TIMEOUT
