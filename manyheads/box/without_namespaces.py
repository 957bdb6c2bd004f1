"""Open boxes without namespaces: zygotes that fork attempts, and the `process` level.

A student's own check uses a forked box. A container whose root cannot create namespaces uses the
level `user`. The `process` level starts a fresh interpreter with rlimits and a deadline, and is not
for grading. Its worker connects over the loopback interface, with a password from standard input,
because on Windows a process cannot inherit a descriptor.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hmac
import io
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import torch

from .connection import GRACE, Box, Channel, Connection
from .contents import box_modules
from .level_and_device_names import BoxUnavailable, Level
from .worker.attempt import allow_only
from .worker.limits import CUDA, Limits, time_files
from .zygote_box import WarmBox, refuse_alone, uid_for_box

_PR_SET_NO_NEW_PRIVS = 38


def open_own_box(*, meta: bool = False) -> Box:
    """Return a box for the student's own check. If it is a `ForkedBox`, this process forks at once.

    It forks attempts if this process has a single thread and the system has pidfds. Otherwise it
    starts a new interpreter for each attempt.

    Args:
        meta: whether calls will have meta tensors. If so, the modules that they need are imported
            before the time of an attempt begins.
    """
    return ForkedBox(meta=meta) if threading.active_count() == 1 and _has_pidfd() else ProcessBox()


def _has_pidfd() -> bool:
    """Return whether the supervisor can wait for an attempt with a pidfd (Linux since 5.3)."""
    with contextlib.suppress(AttributeError, OSError):
        os.close(os.pidfd_open(os.getpid()))
        return True
    return False


class ForkedBox(WarmBox):
    """Forks this process, so that torch is imported only once.

    Torch uses one thread in this process from then on. An attempt starts with a copy of this
    process's memory, so the memory must hold nothing secret. The judge, which has the hidden
    checks, never uses this box.
    """

    level = Level.PROCESS

    def __init__(self, *, meta: bool) -> None:
        self._meta = meta
        self._start()

    def _start(self) -> None:
        torch.set_num_threads(1)  # after OpenMP has started threads, forked children hang
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        modules = box_modules()
        self._zygote = os.fork()
        if self._zygote == 0:
            self._control.close()
            _serve(theirs, modules, meta=self._meta)
        theirs.close()

    def _is_there(self) -> bool:
        return os.waitid(os.P_PID, self._zygote, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def _close(self) -> None:
        self._control.close()
        os.waitpid(self._zygote, 0)


def _serve(control: socket.socket, modules: Collection[str], *, meta: bool) -> None:
    """Run the zygote. Never returns.

    Args:
        control: the zygote's end of the control socket.
        modules: the packages that attempts may import.
        meta: whether to import the modules that calls with meta tensors need.
    """
    # imported late, because it needs modules that only Linux has
    from .worker.zygote import main, make_meta_ready

    try:
        if meta:
            make_meta_ready()
        allow_only(modules)
        os.setsid()  # Ctrl-C reaches only the command, which then ends this process
        os.environ.clear()
        os.environ.update(ENVIRONMENT, PATH=os.defpath)
        main(control.detach(), Level.PROCESS)
    finally:
        os._exit(0)


class UserBox(WarmBox):
    """Level `user`: a zygote with a uid that owns nothing.

    Attempts can read or write a file only if its permissions allow this to everybody.
    """

    level = Level.USER

    def __init__(self) -> None:
        """Start the zygote.

        Raises BoxUnavailable if this process is not root, because only root can start a process
        with another uid. Also raises it if this user namespace has no other uid, or if the zygote
        does not start.
        """
        uid = uid_for_box()
        if uid is None:
            raise BoxUnavailable(
                "level user needs root, which alone can start a process as another user. Next: "
                "course doctor"
            )
        refuse_alone()
        self._uid = uid
        self._start()

    def _start(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            identity = {"user": self._uid, "group": self._uid, "extra_groups": []}
            alone = {
                "stdin": subprocess.DEVNULL,
                "pass_fds": [theirs.fileno()],
                "start_new_session": True,
            }
            self._zygote = start(
                _zygote_code(theirs.fileno()), "/", ENVIRONMENT, **identity, **alone
            )
        if not self._has_started():
            self._close()
            raise BoxUnavailable(
                f"level user does not start here: may others enter {sys.prefix}? Next: course "
                "doctor"
            )

    def _is_there(self) -> bool:
        return self._zygote.poll() is None

    def _close(self) -> None:
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._zygote.pid, signal.SIGKILL)
        self._zygote.wait()


def _zygote_code(descriptor: int) -> str:
    """Return the code of the zygote.

    It sets PR_SET_NO_NEW_PRIVS first, so that no program such as sudo can give it more rights.
    """
    root = str(Path(__file__).parents[2])
    return (
        f"import ctypes; ctypes.CDLL(None).prctl({_PR_SET_NO_NEW_PRIVS}, 1, 0, 0, 0); import gc, "
        f"sys; gc.disable(); sys.path[:0] = {[root, *site_packages()]!r}; from "
        "manyheads.box.worker import attempt, zygote; "
        f"attempt.allow_only({sorted(box_modules())!r}); zygote.main({descriptor}, "
        f"{str(Level.USER)!r})"
    )


# With TORCHDYNAMO_DISABLE, torch.compile returns its argument. Its compiler would need programs and
# folders that no box has.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}
_FOR_CUDA = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
_PATIENCE = 60.0  # seconds for an interpreter to start, and as many for it to import torch
_PASSWORD = 32  # bytes


class ProcessBox:
    """Starts each attempt as a new Python process, in its own session and its own empty folder."""

    level = Level.PROCESS

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection to a new process, in which CUDA has started if `limits` ask for it.

        Raises BoxUnavailable if no process connects within _PATIENCE seconds, or if CUDA does not
        start.
        """
        passed = ("PATH", "SYSTEMROOT", *(_FOR_CUDA if limits.device == CUDA else ()))
        folder = tempfile.TemporaryDirectory(prefix="course-check-", ignore_cleanup_errors=True)
        password = secrets.token_bytes(_PASSWORD)
        # In a new session, Ctrl-C reaches only the command, which then ends the interpreter.
        no_window = {"creationflags": getattr(subprocess, "CREATE_NO_WINDOW", 0)}
        alone: dict[str, Any] = {"start_new_session": True} if hasattr(os, "setsid") else no_window
        with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
            environment = {
                **ENVIRONMENT,
                **{name: os.environ[name] for name in passed if name in os.environ},
            }
            process = start(
                _interpreter_code(limits), folder.name, environment, stdin=subprocess.PIPE, **alone
            )
            assert process.stdin is not None
            with process.stdin as stdin:
                stdin.write(f"{server.getsockname()[1]} {password.hex()}\n".encode())
            try:
                connected = _caller(server, password, time.monotonic() + _PATIENCE)
            except TimeoutError:
                _end(process, folder, GRACE)
                raise BoxUnavailable(
                    f"{sys.executable} does not start. Next: install the course again"
                ) from None
        with connected:
            connected.settimeout(_PATIENCE)
            with contextlib.suppress(OSError):  # the first message then raises AttemptEnded
                connected.recv(1)  # the worker is ready
            connected.setblocking(False)
            data = cast(io.RawIOBase, connected.makefile("rwb", buffering=0))
        channel = Channel(data, data)
        times = time_files(process.pid)
        connection = Connection(channel, limits, lambda s: _end(process, folder, s), times)
        if limits.device == CUDA:
            from .namespaces import start_cuda

            start_cuda(connection)
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        return


def start(
    code: str, folder: str, environment: Mapping[str, str], **options: Any
) -> subprocess.Popen[bytes]:
    """Start a fresh interpreter that runs this code, and discard its output.

    Args:
        code: the code.
        folder: the working folder.
        environment: all environment variables.
        **options: further arguments of Popen.
    """
    command = [sys.executable, "-I", "-B", "-X", "utf8", "-c", code]
    options |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=folder, env=environment, **options)


def site_packages() -> list[str]:
    """Return the folders of `sys.path` in which packages are installed."""
    return [path for path in sys.path if path.endswith("site-packages")]


def _caller(server: socket.socket, password: bytes, deadline: float) -> socket.socket:
    """Return the first connection that sends the password, and close all others before it.

    Raises TimeoutError if there is none at the deadline (of `time.monotonic`).
    """
    while (seconds_left := deadline - time.monotonic()) > 0:
        server.settimeout(seconds_left)
        connected = server.accept()[0]
        connected.settimeout(seconds_left)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError):
            sent = b""
            while len(sent) < len(password) and (
                chunk := connected.recv(len(password) - len(sent))
            ):
                sent += chunk
            if hmac.compare_digest(sent, password):
                return connected
        connected.close()
    raise TimeoutError


def _interpreter_code(limits: Limits) -> str:
    """Return the code of a fresh interpreter, which serves one attempt with these limits."""
    root = str(Path(__file__).parents[2])
    fields = {**dataclasses.asdict(limits), "device": str(limits.device)}
    return (
        f"import sys; sys.path[:0] = {[root, *site_packages()]!r}; "
        "from manyheads.box.worker.fresh_interpreter import main; "
        f"main({fields!r}, {sorted(box_modules())!r})"
    )


def _end(
    process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str], seconds: float
) -> int | None:
    """End the process and its session, remove its folder, and return the exit code.

    A process that ends by itself within 0.05 s is not killed. The exit code follows the convention
    of Popen. It is None if the process had to be killed on Windows, because there it would show
    nothing else. Raises subprocess.TimeoutExpired if the killed process does not end in `seconds`.
    """
    code: int | None = None
    try:
        code = process.wait(0.05)
    except subprocess.TimeoutExpired:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait(seconds)
        else:
            process.kill()
            process.wait(seconds)
    folder.cleanup()
    return code
