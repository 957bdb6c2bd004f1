"""What an attempt's process finds, and what becomes of it: in every kind of box, and it really
misbehaves.
"""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.box import open_box, without_namespaces
from manyheads.box.canary import prove
from manyheads.box.connection import AttemptEnded, Box, Channel, Connection, End, load
from manyheads.box.contents import contents
from manyheads.box.host_processes import has_ended, is_running
from manyheads.box.level_and_device_names import BoxUnavailable, Level
from manyheads.box.without_namespaces import ForkedBox, ProcessBox, _caller, open_own_box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load
from manyheads.course import Course, load_course
from tests.make import copy_course, replies, run

LIMITS = Limits(memory_mib=512, files_mib=4, processes=16)
SYSCALL = (
    "__import__('ctypes').CDLL(None, use_errno=True).syscall({}, 0, 0, 0, 0) and "
    "__import__('ctypes').get_errno()"
)
CAPABILITIES = """
    import ctypes, struct
    sets = ctypes.create_string_buffer(24)  # capget(2): effective, permitted and inheritable \
ones, twice
    assert ctypes.CDLL(None).capget(struct.pack("Ii", 0x20080522, 0), sets) == 0
    return float(sum(struct.unpack("6I", sets.raw)))
"""


def answer(box: Box, body: str, limits: Limits = LIMITS, seconds: float = 10.0):
    """What `f()` of this body answers: a float, or the name of what it raises."""
    source = f"import os, sys, torch\n\ndef f():\n{body}\n"
    (reply,) = replies(box, limits, source, Call("f"), seconds=seconds)
    return reply.raised.type if reply.raised else reply.outputs[0].tensor.item()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            "    return float(os.getpid())", 1.0, id="it is the first process of its namespace"
        ),
        pytest.param(
            "    return float(len(os.listdir('/proc')))",
            0.0,
            id="it sees no process and no host path in /proc",
        ),
        pytest.param("    return float(os.getuid() == 0)", 0.0, id="it is not root"),
        pytest.param("    return float(len(os.listdir('/tmp')))", 0.0, id="its /tmp is empty"),
        pytest.param("    open('/usr/x', 'w')", "OSError", id="it cannot write to /usr"),
        pytest.param(
            "    import socket\n    socket.socket()",
            "PermissionError",
            id="it cannot make a socket",
        ),
        pytest.param(
            "    return float('PATH' in os.environ)", 0.0, id="it has no environment of ours"
        ),
        pytest.param("    import pytest", "ModuleNotFoundError", id="it cannot import pytest"),
        pytest.param(
            "    import manyheads", "ModuleNotFoundError", id="it cannot import the grader"
        ),
        pytest.param(
            "    import numpy, einops\n    return 1.0", 1.0, id="it can import numpy and einops"
        ),
        pytest.param(
            "    torch.empty(1 << 30, dtype=torch.float64)",
            "RuntimeError",
            id="it cannot take 8 GiB at once",
        ),
        pytest.param(
            "    open('/tmp/a', 'wb').write(bytes(8 << 20))",
            "OSError",
            id="it cannot fill the disk",
        ),
        pytest.param("    os.chroot('/tmp')", "PermissionError", id="it cannot change its root"),
        pytest.param(
            "    import gc\n    return float(gc.isenabled() and gc.get_threshold()[0] > 700)",
            1.0,
            id="it collects garbage, more rarely than Python by itself",
        ),
        pytest.param("    sys.exit(0)", "SystemExit", id="exiting Python is only an exception"),
        pytest.param(
            "    os.kill(1, 9)\n    return 7.0",
            7.0,
            id="it cannot kill its namespace's first process",
        ),
        pytest.param(
            "    os.sched_setaffinity(0, range(os.cpu_count()))",
            "PermissionError",
            id="it stays on its CPU",
        ),
        pytest.param(
            "    os.fork() or os.setsid()\n    os.setsid()",
            "PermissionError",
            id="it stays in its session",
        ),
        pytest.param(
            f"    return float({SYSCALL.format(457)})",
            38.0,
            id="it cannot ask where things are mounted from",
        ),
        pytest.param(f"    return float({SYSCALL.format(458)})", 38.0, id="it cannot list mounts"),
        pytest.param(CAPABILITIES, 0.0, id="it has no capability, whatever the zygote has"),
    ],
)
def test_inside(box, body, expected):
    assert answer(box, body) == expected


@pytest.mark.parametrize(
    ("body", "end", "says"),
    [
        pytest.param("    os._exit(3)", End.CRASHED, "exit status 3", id="it ends itself"),
        pytest.param(
            "    import ctypes\n    ctypes.string_at(0)",
            End.CRASHED,
            "SIGSEGV",
            id="it reads address 0",
        ),
        pytest.param("    while True: pass", End.TIMEOUT, "endless loop", id="it loops for ever"),
        pytest.param(
            "    import signal\n    for s in range(1, 65):\n"
            "        try: signal.signal(s, signal.SIG_IGN)\n"
            "        except (OSError, ValueError): pass\n    while True: pass",
            End.TIMEOUT,
            "endless loop",
            id="it loops and ignores every signal",
        ),
        pytest.param(
            "    os.write(65, b'x' * 100)\n    return 1.0",
            End.BAD_REPLY,
            "not an answer",
            id="it writes bytes",
        ),
    ],
)
def test_its_end_is_told_in_one_sentence(box, body, end, says):
    with pytest.raises(AttemptEnded, match=says) as caught:
        answer(box, body, seconds=1.0)
    assert caught.value.end is end


def test_what_it_starts_ends_with_it(box, tmp_path):
    named = (
        "        import ctypes, time\n        ctypes.CDLL(None).prctl(15, b'mh-orphan', 0, 0, 0)\n"
    )
    answer(
        box,
        (
            f"    if os.fork() == 0:\n        os.setsid()\n{named}        time.sleep(60)\n"
            "    return 1.0"
        ),
    )
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


def test_the_box_holds_torch_and_no_test_tool():
    names = {bind.target.rpartition("/")[2] for bind in contents().binds}
    assert {"torch", "numpy", "einops", "safetensors", "manyheads_worker"} <= names
    assert not {"pytest", "nbgrader", "pydantic", "grader", "hypothesis"} & names


BODIES = {
    "folder is empty": "return float(len(os.listdir('.')))",
    "folder": "raise LookupError(os.getcwd())",
    "environment": "raise LookupError(' '.join(sorted(os.environ)))",
    "leaves a file": "open('left', 'w').close()\n    return 1.0",
    "leaves a name": "torch.left = 1.0\n    return 1.0",
    "finds a name": "return float(hasattr(torch, 'left'))",
    "leaves a process": (
        "pid = os.fork()\n    if pid == 0:\n        time.sleep(60)\n    return float(pid)"
    ),
    "exits": "os._exit(3)",
    "loops": "while True: pass",
    "meta": "return float('torch.fx.experimental.symbolic_shapes' in sys.modules)",
    "computes": "return torch.ones(3, 3).matmul(torch.ones(3, 3)).sum().item()",
}
SCRIPT = """
import json, sys
from manyheads.box.connection import AttemptEnded
from manyheads.box.without_namespaces import open_own_box
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Call, Load

def answer(box, body):
    connection = box.attempt(Limits())
    try:
        source = f"import os, sys, time, torch\\n\\ndef f():\\n    {body}\\n"
        assert connection.ask(Load(source, "attempt.py"), 10.0).raised is None
        reply = connection.ask(Call("f"), 1.0 if body.startswith("while") else 10.0)
        return reply.raised.message if reply.raised else reply.outputs[0].tensor.item()
    except AttemptEnded as ended:
        return str(ended)
    finally:
        connection.close()

with open_own_box(meta=True) as box:
    said = {name: answer(box, body) for name, body in json.loads(sys.argv[1]).items()}
    said["zygote"] = box._zygote
print(json.dumps({"box": type(box).__name__, **said}))
"""


@pytest.fixture(scope="module")
def fork_replies() -> dict[str, object]:
    completed = run(sys.executable, "-c", SCRIPT, json.dumps(BODIES), A_TOKEN="x")
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        pytest.param(
            "box", lambda reply: reply == "ForkedBox", id="a command without threads forks"
        ),
        pytest.param("computes", lambda reply: reply == 27.0, id="torch computes in it"),
        pytest.param(
            "meta",
            lambda reply: reply == 1.0,
            id="what the meta device needs is there before an attempt begins",
        ),
        pytest.param(
            "folder is empty", lambda reply: reply == 0.0, id="an attempt stands in an empty folder"
        ),
        pytest.param("folder", lambda reply: not Path(reply).exists(), id="which goes with it"),
        pytest.param(
            "finds a name",
            lambda reply: reply == 0.0,
            id="what one leaves in Python the next does not find",
        ),
        pytest.param(
            "environment",
            lambda reply: "A_TOKEN" not in reply.split(),
            id="the command's environment stays outside",
        ),
        pytest.param("exits", lambda reply: "exit status 3" in reply, id="an exit is told as one"),
        pytest.param(
            "loops",
            lambda reply: "endless loop" in reply,
            id="an endless loop ends at the deadline",
        ),
    ],
)
def test_inside_a_fork(fork_replies, name, holds):
    assert holds(fork_replies[name])


@pytest.mark.parametrize("name", ["leaves a process", "zygote"])
def test_no_process_is_left(fork_replies, name):
    ends = time.monotonic() + 60.0  # a busy machine is slow
    while not has_ended(int(fork_replies[name])):  # the kernel may need a moment
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_where_threads_run_every_attempt_is_a_new_interpreter():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert isinstance(open_own_box(), ProcessBox)
    finally:
        stop.set()
        thread.join()


def test_an_interpreter_that_does_not_connect_has_ended_when_its_box_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = list[subprocess.Popen[bytes]]()

    def start_idle(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        """Start an interpreter that sleeps and never connects, and keep its process."""
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))
        return started[0]

    monkeypatch.setattr(without_namespaces, "start", start_idle)
    monkeypatch.setattr(without_namespaces, "_PATIENCE", 0.1)
    with ProcessBox() as process_box, pytest.raises(BoxUnavailable, match="does not start"):
        process_box.attempt(LIMITS)
    assert started[0].returncode == -signal.SIGKILL


PASSWORD = bytes(range(32))


def test_who_does_not_know_the_password_is_sent_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        stranger, ours = (socket.create_connection(server.getsockname()) for _ in range(2))
        with stranger, ours:
            stranger.sendall(PASSWORD[::-1])
            ours.sendall(PASSWORD)
            with _caller(server, PASSWORD, time.monotonic() + 60) as caller:
                assert caller.getpeername() == ours.getsockname()
            assert stranger.recv(1) == b""


def test_who_waits_for_a_call_that_never_comes_gives_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(TimeoutError):
        _caller(server, PASSWORD, time.monotonic() + 0.01)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param(-11, "was ended by SIGSEGV (a crash in native code).", id="a signal"),
        pytest.param(3, "(exit status 3)", id="an exit"),
        pytest.param(
            0xC0000005,
            "was ended by Windows, with 0xC0000005 (a crash in native code).",
            id="a crash on Windows",
        ),
        pytest.param(
            0xC0000142, "was ended by Windows, with 0xC0000142.", id="another end on Windows"
        ),
        pytest.param(None, "ended in the middle of a call.", id="who knows"),
    ],
)
def test_how_it_ended_is_one_sentence(code: int | None, said: str) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    ours.setblocking(False)
    file = ours.makefile("rwb", buffering=0)
    with pytest.raises(AttemptEnded) as ended:
        Connection(Channel(file, file), Limits(), lambda seconds: code).ask(Call("f"), 5.0)
    assert said in str(ended.value)


@pytest.fixture(scope="module")
def user_box() -> Iterator[Box]:
    if os.geteuid():
        pytest.skip("this is not root, which alone can start a process as another user")
    site = Path(sysconfig.get_path("purelib"))
    if not all(folder.stat().st_mode & stat.S_IXOTH for folder in (site, *site.parents)):
        pytest.skip(f"no other user may enter {site}")
    with open_box(Level.USER, Limits(), Path()) as opened:
        yield opened


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            "    return float(os.getuid() >= 61184 and os.getgroups() == [])",
            1.0,
            id="it owns nothing",
        ),
        pytest.param("    os.setuid(0)", "PermissionError", id="it cannot become root"),
        pytest.param(
            "    import ctypes\n    return float(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))",
            1.0,
            id="no program gives it rights",
        ),
        pytest.param(
            "    open('/etc/shadow')", "PermissionError", id="it cannot read what others may not"
        ),
        pytest.param(
            "    return float('PATH' in os.environ)", 0.0, id="it has no environment of ours"
        ),
        pytest.param(
            "    import numpy, einops\n    return 1.0", 1.0, id="it can import numpy and einops"
        ),
    ],
)
def test_an_attempt(user_box: Box, body: str, expected: float | str) -> None:
    assert answer(user_box, body) == expected


def test_a_zygote_that_an_attempt_kills_is_replaced(user_box: Box) -> None:
    assert answer(user_box, "    os.kill(os.getppid(), 9)\n    return 1.0") == 1.0
    assert answer(user_box, "    return 2.0") == 2.0


def test_a_course_is_graded_only_where_others_may_not_read_it(user_box: Box, tiny: Course) -> None:
    with tempfile.TemporaryDirectory() as temp_dir:
        Path(temp_dir).chmod(0o755)
        course = load_course(copy_course(tiny.root, Path(temp_dir, "tiny")))
        course.root.chmod(0o755)
        with pytest.raises(BoxUnavailable, match="read a file of the course"):
            prove(user_box, course.limits.for_worker(), course.root, course.hidden_files())
        course.root.chmod(0o700)
        prove(user_box, course.limits.for_worker(), course.root, course.hidden_files())


REFUSED = ["matplotlib.pyplot", "pytest", "yaml", "rich", "pydantic", "my_helpers", "scipy.special"]
ALLOWED = [
    "math",
    "json",
    "torch.nn.functional",
    "numpy",
    "einops",
    "safetensors.torch",
    "sympy",
    "typing_extensions",
]


@pytest.fixture(params=["namespaces", "forked", "process"])
def any_box(request: pytest.FixtureRequest) -> Iterator[Box]:
    """A box of each level. This process has imported pytest, yaml, rich and pydantic, and a forked
    one could find them.
    """
    if request.param == "namespaces":
        yield request.getfixturevalue("box")
        return
    with ForkedBox(meta=False) if request.param == "forked" else ProcessBox() as opened:
        yield opened


def test_what_may_be_imported_is_the_same_in_every_box(any_box: Box) -> None:
    source = "".join(
        f"import {name}\n"
        for name in [*REFUSED, *ALLOWED, "sysconfig; sysconfig.get_config_vars()"]
    )
    process = load(any_box, Limits(seconds_per_call=20.0), Load(source, "a.py"))
    process.connection.close()
    assert [statement.line for statement in process.stopped] == [*range(1, len(REFUSED) + 1)]
    assert {statement.raised.type for statement in process.stopped if statement.raised} == {
        "ModuleNotFoundError"
    }
    assert process.stopped[0].raised.message.startswith("No module named 'matplotlib")
