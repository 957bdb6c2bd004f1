"""Internal: `_caller` accepts connections. The rights, end and imports of an attempt's process."""

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
from collections.abc import Callable, Iterator
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
from manyheads.course import load_course
from tests.box.conftest import value_of
from tests.make import copy_course, run

LIMITS = Limits(memory_mib=512, files_mib=4, processes=16)
SYSCALL = (
    "    import ctypes\n    libc = ctypes.CDLL(None, use_errno=True)\n"
    "    return float(libc.syscall({}, 0, 0, 0, 0) and ctypes.get_errno())"
)
CAPABILITIES = """\
    import ctypes, struct
    # capget(2): effective, permitted and inheritable ones, twice
    sets = ctypes.create_string_buffer(24)
    assert ctypes.CDLL(None).capget(struct.pack("Ii", 0x20080522, 0), sets) == 0
    return float(sum(struct.unpack("6I", sets.raw)))
"""
NO_ENVIRONMENT = "    return float('PATH' in os.environ)"
LIBRARIES = "    import numpy, einops\n    return 1.0"
# The body of f(), and the number that it returns or the name of its exception.
BODIES_AND_RESULTS: dict[str, tuple[str, float | str]] = {
    "it is the first process of its namespace": ("    return float(os.getpid())", 1.0),
    "it sees no process and no host path in /proc": (
        "    return float(len(os.listdir('/proc')))",
        0.0,
    ),
    "it is not root": ("    return float(os.getuid() == 0)", 0.0),
    "its /tmp is empty": ("    return float(len(os.listdir('/tmp')))", 0.0),
    "it cannot write to /usr": ("    open('/usr/x', 'w')", "OSError"),
    "it cannot make a socket": ("    import socket\n    socket.socket()", "PermissionError"),
    "it has no environment of ours": (NO_ENVIRONMENT, 0.0),
    "it cannot import the grader": ("    import manyheads", "ModuleNotFoundError"),
    "it can import numpy and einops": (LIBRARIES, 1.0),
    "it cannot take 8 GiB at once": (
        "    torch.empty(1 << 30, dtype=torch.float64)",
        "RuntimeError",
    ),
    "it cannot fill the disk": ("    open('/tmp/a', 'wb').write(bytes(8 << 20))", "OSError"),
    "it cannot change its root": ("    os.chroot('/tmp')", "PermissionError"),
    "it collects garbage, more rarely than Python by itself": (
        "    import gc\n    return float(gc.isenabled() and gc.get_threshold()[0] > 700)",
        1.0,
    ),
    "exiting Python is only an exception": ("    sys.exit(0)", "SystemExit"),
    "it cannot kill its namespace's first process": ("    os.kill(1, 9)\n    return 7.0", 7.0),
    "it stays on its CPU": (
        "    os.sched_setaffinity(0, range(os.cpu_count()))",
        "PermissionError",
    ),
    "it stays in its session": ("    os.fork() or os.setsid()\n    os.setsid()", "PermissionError"),
    "it cannot ask where things are mounted from": (SYSCALL.format(457), 38.0),
    "it cannot list mounts": (SYSCALL.format(458), 38.0),
    "it has no capability, whatever the zygote has": (CAPABILITIES, 0.0),
}


@pytest.mark.parametrize(("body", "expected"), BODIES_AND_RESULTS.values(), ids=BODIES_AND_RESULTS)
def test_an_attempt_in_a_box_has_only_these_rights(box, body, expected):
    assert value_of(box, LIMITS, body) == expected


IGNORES_SIGNALS = """\
    import signal
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    while True: pass
"""
# The body of f(), how its process ends, and a part of the message.
BODIES_AND_ENDS = {
    "it ends itself": ("    os._exit(3)", End.CRASHED, "exit status 3"),
    "it reads address 0": ("    import ctypes; ctypes.string_at(0)", End.CRASHED, "SIGSEGV"),
    "it loops and ignores every signal": (IGNORES_SIGNALS, End.TIMEOUT, "endless loop"),
    "it writes bytes": (
        "    os.write(65, b'x' * 100)\n    return 1.0",
        End.BAD_REPLY,
        "not an answer",
    ),
}


@pytest.mark.parametrize(
    ("body", "end", "message_pattern"), BODIES_AND_ENDS.values(), ids=BODIES_AND_ENDS
)
def test_the_message_names_why_a_process_ended(box, body, end, message_pattern):
    with pytest.raises(AttemptEnded, match=message_pattern) as caught:
        value_of(box, LIMITS, body, seconds=1.0)
    assert caught.value.end is end


ORPHAN = """\
    import ctypes
    if os.fork() == 0:
        os.setsid()
        ctypes.CDLL(None).prctl(15, b'mh-orphan', 0, 0, 0)
        time.sleep(60)
    return 1.0
"""


def test_child_processes_end_with_their_attempt(box):
    assert value_of(box, LIMITS, ORPHAN) == 1.0
    assert not is_running("mh-orphan")


def test_two_attempts_at_the_same_time_are_independent(box):
    """One supervisor has both: the end of the first does not affect the second."""
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


def test_the_box_contains_torch_but_no_test_tool():
    names = {bind.target.rpartition("/")[2] for bind in contents().binds}
    assert {"torch", "numpy", "einops", "safetensors", "manyheads_worker"} <= names
    assert not {"pytest", "nbgrader", "pydantic", "grader", "hypothesis"} & names


# The body of f(), and a condition on its number or message. One box runs them in this order.
BODIES_AND_CONDITIONS: dict[str, tuple[str, Callable[..., object]]] = {
    "torch computes in it": (
        "return torch.ones(3, 3).matmul(torch.ones(3, 3)).sum().item()",
        lambda reply: reply == 27.0,
    ),
    "an attempt stands in an empty folder, which goes with it": (
        "raise LookupError(os.getcwd() if not os.listdir('.') else '/')",
        lambda reply: not Path(reply).exists(),
    ),
    "the command's environment stays outside": (
        "raise LookupError(' '.join(sorted(os.environ)))",
        lambda reply: "A_TOKEN" not in reply.split(),
    ),
    "it leaves a name in Python": ("torch.left = 1.0\n    return 1.0", lambda reply: reply == 1.0),
    "the next attempt does not find that name": (
        "return float(hasattr(torch, 'left'))",
        lambda reply: reply == 0.0,
    ),
    "an exit is reported with its status": ("os._exit(3)", lambda reply: "exit status 3" in reply),
    "an endless loop ends at the deadline": (
        "while True: pass",
        lambda reply: "endless loop" in reply,
    ),
    "what the meta device needs is there before an attempt begins": (
        "return float('torch.fx.experimental.symbolic_shapes' in sys.modules)",
        lambda reply: reply == 1.0,
    ),
    "no child process is left": (
        "pid = os.fork()\n    time.sleep(60 * (pid == 0))\n    return float(pid)",
        lambda reply: ends_soon(int(reply)),
    ),
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
    answers = {name: answer(box, body) for name, body in json.loads(sys.argv[1]).items()}
    answers["zygote"] = box._zygote
print(json.dumps({"box": type(box).__name__, **answers}))
"""


def ends_soon(pid: int) -> bool:
    """Wait up to a minute for the end of a process, and return whether it has ended."""
    deadline = time.monotonic() + 60.0  # a busy machine is slow
    while not has_ended(pid) and time.monotonic() < deadline:  # the kernel may need a moment
        time.sleep(0.01)
    return has_ended(pid)


def test_a_command_without_threads_forks_each_attempt():
    bodies = {name: body for name, (body, _) in BODIES_AND_CONDITIONS.items()}
    completed = run(sys.executable, "-c", SCRIPT, json.dumps(bodies), A_TOKEN="x")
    assert completed.returncode == 0, completed.stderr
    answers = json.loads(completed.stdout)
    assert answers["box"] == "ForkedBox"
    unexpected = {
        name: answers[name]
        for name, (_, holds) in BODIES_AND_CONDITIONS.items()
        if not holds(answers[name])
    }
    assert unexpected == {}
    assert ends_soon(answers["zygote"])


def test_a_command_with_threads_starts_new_interpreters():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert isinstance(open_own_box(), ProcessBox)
    finally:
        stop.set()
        thread.join()


def test_an_interpreter_that_does_not_connect_is_killed(
    monkeypatch,
):
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


def test_only_a_caller_with_the_password_is_accepted():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(TimeoutError):
            _caller(server, PASSWORD, time.monotonic() + 0.01)
        stranger, ours = (socket.create_connection(server.getsockname()) for _ in range(2))
        with stranger, ours:
            stranger.sendall(PASSWORD[::-1])
            ours.sendall(PASSWORD)
            with _caller(server, PASSWORD, time.monotonic() + 60) as caller:
                assert caller.getpeername() == ours.getsockname()
            assert stranger.recv(1) == b""


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (-11, "was ended by SIGSEGV (a crash in native code)."),
        (3, "(exit status 3)"),
        (0xC0000005, "was ended by Windows, with 0xC0000005 (a crash in native code)."),
        (0xC0000142, "was ended by Windows, with 0xC0000142."),
        (None, "ended in the middle of a call."),
    ],
)
def test_the_message_describes_the_exit_code(code, sentence):
    ours, theirs = socket.socketpair()
    theirs.close()
    ours.setblocking(False)
    file = ours.makefile("rwb", buffering=0)
    with pytest.raises(AttemptEnded) as ended:
        Connection(Channel(file, file), Limits(), lambda seconds: code).ask(Call("f"), 5.0)
    assert sentence in str(ended.value)


@pytest.fixture(scope="module")
def user_box() -> Iterator[Box]:
    """Yield a box that runs attempts as another user."""
    if os.geteuid():
        pytest.skip("this is not root, which alone can start a process as another user")
    site = Path(sysconfig.get_path("purelib"))
    if not all(folder.stat().st_mode & stat.S_IXOTH for folder in (site, *site.parents)):
        pytest.skip(f"no other user may enter {site}")
    with open_box(Level.USER, Limits(), Path()) as opened:
        yield opened


# The body of f(), and the number that it returns or the name of its exception.
AS_ANOTHER_USER: dict[str, tuple[str, float | str]] = {
    "it owns nothing": (
        "    return float(os.getuid() >= 61184 and os.getgroups() == [])",
        1.0,
    ),
    "it cannot become root": ("    os.setuid(0)", "PermissionError"),
    "no program gives it rights": (
        "    import ctypes\n    return float(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))",
        1.0,
    ),
    "it cannot read what others may not": ("    open('/etc/shadow')", "PermissionError"),
    "it has no environment of ours": (NO_ENVIRONMENT, 0.0),
    "it can import numpy and einops": (LIBRARIES, 1.0),
    "it can kill its zygote": ("    os.kill(os.getppid(), 9)\n    return 1.0", 1.0),
    "the zygote is replaced": ("    return 2.0", 2.0),
}


def test_an_attempt_of_another_user_has_only_these_rights(user_box):
    answers = {
        name: value_of(user_box, LIMITS, body) for name, (body, _) in AS_ANOTHER_USER.items()
    }
    assert answers == {name: expected for name, (_, expected) in AS_ANOTHER_USER.items()}


def test_a_course_that_others_may_read_is_not_graded(user_box, tiny):
    with tempfile.TemporaryDirectory() as temp_dir:
        Path(temp_dir).chmod(0o755)
        course = load_course(copy_course(tiny.root, Path(temp_dir, "tiny")))
        course.root.chmod(0o755)
        with pytest.raises(BoxUnavailable, match="read a file of the course"):
            prove(user_box, course.limits.for_worker(), course.root, course.hidden_files())
        course.root.chmod(0o700)
        prove(user_box, course.limits.for_worker(), course.root, course.hidden_files())


REFUSED = "matplotlib.pyplot pytest yaml rich pydantic my_helpers scipy.special".split()
ALLOWED = (
    "math json torch.nn.functional numpy einops safetensors.torch sympy typing_extensions".split()
)


@pytest.fixture(params=["namespaces", "forked", "process"])
def any_box(request: pytest.FixtureRequest) -> Iterator[Box]:
    """Yield a box of each kind. A forked box might inherit modules that this process imported."""
    if request.param == "namespaces":
        yield request.getfixturevalue("box")
        return
    with ForkedBox(meta=False) if request.param == "forked" else ProcessBox() as opened:
        yield opened


def test_every_box_refuses_the_same_imports(any_box):
    lines = [f"import {name}" for name in (*REFUSED, *ALLOWED)]
    source = "\n".join([*lines, "import sysconfig; sysconfig.get_config_vars()"])
    process = load(any_box, Limits(seconds_per_call=20.0), Load(source, "a.py"))
    process.connection.close()
    assert [statement.line for statement in process.stopped] == [*range(1, len(REFUSED) + 1)]
    assert {statement.raised.type for statement in process.stopped} == {"ModuleNotFoundError"}
    assert process.stopped[0].raised.message.startswith("No module named 'matplotlib")
