"""Each limit of course.yaml, met by a real attempt that runs into it, and by one that stays just below."""

import contextlib
from collections.abc import Iterator
from enum import StrEnum

import pytest

from manyheads.box import process
from manyheads.box.cgroup import ZYGOTE_MIB, make_cgroup, plan_cgroup
from manyheads.box.connection import AttemptEnded, End
from manyheads.box.level import Box, Level, open_box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load
from tests.make import replies

LIMITS = Limits(seconds_per_attempt=30.0, seconds_per_call=10.0, memory_mib=512, files_mib=4, processes=16,
    open_files=100, reply_mib=2)  # fmt: skip
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
def box(tmp_path_factory) -> Iterator[Box]:
    with open_box(Level.NAMESPACES, LIMITS, tmp_path_factory.mktemp("hidden")) as opened:
        yield opened


def answer(box: Box, body: str, limits: Limits = LIMITS) -> float:
    source = f"{COUNTING}\ndef f():\n{body}\n"
    (reply,) = replies(box, limits, source, Call("f"), seconds=limits.seconds_per_call)
    assert reply.raised is None, reply.raised
    return reply.outputs[0].tensor.item()


OPENED = "    most = count(lambda i: os.open('/dev/null', 0), 500)\n    os.closerange(70, 100)\n    return most"
STARTED = "started = count(lambda i: threading.Thread(target=done.wait).start(), 64)"


@pytest.mark.parametrize(("body", "least", "most"), [
    pytest.param("    kept = []\n    return count(lambda i: kept.append(take(32)), 64) * 32", 256, 512,
        id="memory, in MiB"),
    pytest.param("    return count(child, 64)", 8, 15, id="processes"),
    pytest.param(f"    done = threading.Event()\n    {STARTED}\n    done.set()\n    return started", 4, 15,
        id="threads"),  # whose stacks and arenas are address space as well
    pytest.param(OPENED, 80, 100, id="open files"),
    pytest.param("    return count(fill('/tmp'), 64)", 3, 4, id="MiB in /tmp"),
    pytest.param("    return count(fill('/dev/shm'), 64)", 3, 4, id="MiB in /dev/shm"),
    pytest.param("    return count(lambda i: open(f'/tmp/{i}', 'w').close(), 5000)", 900, 1024, id="files in /tmp"),
    pytest.param("    return count(lambda i: open(f'/dev/shm/{i}', 'w').close(), 5000)", 900, 1024,
        id="files in /dev/shm"),
    pytest.param("    print('x' * (64 << 20), flush=True)\n    return 1.0", 1, 1, id="stdout goes nowhere"),
])  # fmt: skip
def test_an_attempt_gets_so_much_and_no_more(box, body, least, most):
    assert least <= answer(box, body) <= most


def test_a_new_interpreter_can_read_the_limits_whatever_named_the_device():
    class Device(StrEnum):
        CUDA = "cuda"

    compile(process._code(Limits().on(Device.CUDA)), "<started>", "exec")


def test_a_reply_just_below_its_limit_is_read_and_one_above_it_is_not(box):
    connection = box.attempt(LIMITS)
    try:
        connection.ask(Load(f"{COUNTING}\ndef f(mib):\n    return take(mib)\n", "attempt.py"), 10.0)
        assert connection.ask(Call("f", (1,)), 10.0).outputs[0].tensor.numel() == 1 << 20
        with pytest.raises(AttemptEnded, match="2 MiB") as caught:
            connection.ask(Call("f", (3,)), 10.0)
    finally:
        connection.close()
    assert caught.value.end is End.BAD_REPLY


@pytest.mark.parametrize(("body", "limits", "end"), [
    pytest.param("    time.sleep(60)", Limits(seconds_per_call=0.3), End.TIMEOUT, id="of a call by the judge's clock"),
    pytest.param("    while True: pass", Limits(seconds_per_attempt=0.5, seconds_per_call=20.0), End.CRASHED,
        id="of an attempt by the kernel's, the second belt"),
])  # fmt: skip
def test_its_time_ends(box, body, limits, end):
    with pytest.raises(AttemptEnded) as caught:
        answer(box, body, limits)
    assert caught.value.end is end


def test_all_processes_of_an_attempt_share_one_bound_of_memory(box):
    """Eight children of 300 MiB each: every one within its rlimit, all together beyond the box's cgroup."""
    group = make_cgroup(plan_cgroup(LIMITS))
    group.remove()
    if not group.folders:
        pytest.skip("this machine lets nobody make a cgroup: each process of an attempt is bounded by itself")
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
        survivors = answer(box, body)
    assert survivors * 300 <= LIMITS.memory_mib + ZYGOTE_MIB
