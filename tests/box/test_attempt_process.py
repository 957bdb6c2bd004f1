"""What an attempt's process finds, and what becomes of it. Real processes that really misbehave."""

import pytest

from manyheads.box.connection import AttemptEnded, End
from manyheads.box.contents import contents
from manyheads.box.level import Box, BoxUnavailable, Level, open_box
from manyheads.box.procstat import is_running
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load
from tests.make import replies

LIMITS = Limits(memory_mib=512, files_mib=4, processes=16)


SYSCALL = "__import__('ctypes').CDLL(None, use_errno=True).syscall({}, 0, 0, 0, 0) and __import__('ctypes').get_errno()"
CAPABILITIES = """
    import ctypes, struct
    sets = ctypes.create_string_buffer(24)  # capget(2): effective, permitted and inheritable ones, twice
    assert ctypes.CDLL(None).capget(struct.pack("Ii", 0x20080522, 0), sets) == 0
    return float(sum(struct.unpack("6I", sets.raw)))
"""


def answer(box: Box, body: str, limits: Limits = LIMITS, seconds: float = 10.0):
    """What `f()` of this body answers: a float, or the name of what it raises."""
    source = f"import os, sys, torch\n\ndef f():\n{body}\n"
    (reply,) = replies(box, limits, source, Call("f"), seconds=seconds)
    return reply.raised.type if reply.raised else reply.outputs[0].tensor.item()


@pytest.mark.parametrize(("body", "expected"), [
    pytest.param("    return float(os.getpid())", 1.0, id="it is the first process of its namespace"),
    pytest.param("    return float(len(os.listdir('/proc')))", 0.0, id="it sees no process and no host path in /proc"),
    pytest.param("    return float(os.getuid() == 0)", 0.0, id="it is not root"),
    pytest.param("    return float(len(os.listdir('/tmp')))", 0.0, id="its /tmp is empty"),
    pytest.param("    open('/usr/x', 'w')", "OSError", id="it cannot write to /usr"),
    pytest.param("    import socket\n    socket.socket()", "PermissionError", id="it cannot make a socket"),
    pytest.param("    return float('PATH' in os.environ)", 0.0, id="it has no environment of ours"),
    pytest.param("    import pytest", "ModuleNotFoundError", id="it cannot import pytest"),
    pytest.param("    import manyheads", "ModuleNotFoundError", id="it cannot import the grader"),
    pytest.param("    import numpy, einops\n    return 1.0", 1.0, id="it can import numpy and einops"),
    pytest.param("    torch.empty(1 << 30, dtype=torch.float64)", "RuntimeError", id="it cannot take 8 GiB at once"),
    pytest.param("    open('/tmp/a', 'wb').write(bytes(8 << 20))", "OSError", id="it cannot fill the disk"),
    pytest.param("    os.chroot('/tmp')", "PermissionError", id="it cannot change its root"),
    pytest.param("    import gc\n    return float(gc.isenabled() and gc.get_threshold()[0] > 700)", 1.0,
        id="it collects garbage, more rarely than Python by itself"),
    pytest.param("    sys.exit(0)", "SystemExit", id="exiting Python is only an exception"),
    pytest.param("    os.kill(1, 9)\n    return 7.0", 7.0, id="it cannot kill its namespace's first process"),
    pytest.param("    os.sched_setaffinity(0, range(os.cpu_count()))", "PermissionError", id="it stays on its CPU"),
    pytest.param("    os.fork() or os.setsid()\n    os.setsid()", "PermissionError", id="it stays in its session"),
    pytest.param(f"    return float({SYSCALL.format(457)})", 38.0, id="it cannot ask where things are mounted from"),
    pytest.param(f"    return float({SYSCALL.format(458)})", 38.0, id="it cannot list mounts"),
    pytest.param(CAPABILITIES, 0.0, id="it has no capability, whatever the zygote has"),
])  # fmt: skip
def test_inside(box, body, expected):
    assert answer(box, body) == expected


@pytest.mark.parametrize(("body", "end", "says"), [
    pytest.param("    os._exit(3)", End.CRASHED, "exit status 3", id="it ends itself"),
    pytest.param("    import ctypes\n    ctypes.string_at(0)", End.CRASHED, "SIGSEGV", id="it reads address 0"),
    pytest.param("    while True: pass", End.TIMEOUT, "endless loop", id="it loops for ever"),
    pytest.param("    import signal\n    for s in range(1, 65):\n        try: signal.signal(s, signal.SIG_IGN)\n"
        "        except (OSError, ValueError): pass\n    while True: pass", End.TIMEOUT, "endless loop",
        id="it loops and ignores every signal"),
    pytest.param("    os.write(65, b'x' * 100)\n    return 1.0", End.BAD_REPLY, "not an answer", id="it writes bytes"),
])  # fmt: skip
def test_its_end_is_told_in_one_sentence(box, body, end, says):
    with pytest.raises(AttemptEnded, match=says) as caught:
        answer(box, body, seconds=1.0)
    assert caught.value.end is end


def test_what_it_starts_ends_with_it(box, tmp_path):
    named = "        import ctypes, time\n        ctypes.CDLL(None).prctl(15, b'mh-orphan', 0, 0, 0)\n"
    answer(box, f"    if os.fork() == 0:\n        os.setsid()\n{named}        time.sleep(60)\n    return 1.0")
    assert not is_running("mh-orphan")


def test_two_at_a_time_are_each_alone(box):
    """One keeper has both: what ends the first leaves the second as it is."""
    source = "import os\n\ndef f():\n    return float(os.getpid())\n\ndef g():\n    os._exit(3)\n"
    first, second = box.attempt(LIMITS), box.attempt(LIMITS)
    try:
        for connection in (first, second):
            assert connection.ask(Load(source, "attempt.py"), 10.0).raised is None
            assert connection.ask(Call("f"), 10.0).outputs[0].tensor == 1.0
        with pytest.raises(AttemptEnded, match="exit status 3"):
            first.ask(Call("g"), 10.0)
        assert second.ask(Call("f"), 10.0).outputs[0].tensor == 1.0
    finally:
        first.close()
        second.close()


def test_the_next_attempt_sees_nothing_of_the_last(box):
    answer(box, "    open('/tmp/left', 'w').write('x')\n    open('/dev/shm/left', 'w').write('x')\n    return 1.0")
    assert answer(box, "    return float(os.path.exists('/tmp/left') or os.path.exists('/dev/shm/left'))") == 0.0


def test_a_box_that_broke_is_replaced(box):
    box._reaper.kill()
    box._reaper.wait()
    assert answer(box, "    return 2.0") == 2.0


def test_without_bubblewrap_the_message_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BoxUnavailable, match="sudo apt-get install bubblewrap"):
        open_box(Level.NAMESPACES, LIMITS, tmp_path)


def test_the_box_holds_torch_and_no_test_tool():
    names = {bind.target.rpartition("/")[2] for bind in contents().binds}
    assert {"torch", "numpy", "einops", "safetensors", "manyheads_worker"} <= names
    assert not {"pytest", "nbgrader", "pydantic", "grader", "hypothesis"} & names
