"""The `process` level: a fresh interpreter with rlimits and a deadline.

It is for a student's own check, not for grading.

It connects over the loopback, with a password from its standard input, for Windows lets no process
inherit a descriptor.
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
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from .connection import Channel, Connection
from .contents import box_modules
from .names import BoxUnavailable, Level
from .worker.limits import CUDA, Limits, time_files

# torch.compile gives back what it is given: its compiler needs programs and folders that no box
# has.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}
_FOR_CUDA = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
_PATIENCE = 60.0  # seconds for an interpreter to start, and as many for it to import torch
_PASSWORD = 32  # bytes


class ProcessBox:
    """Starts each attempt as a new Python process, in its own session and its own empty folder."""

    level = Level.PROCESS

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection to a new process. Raises BoxUnavailable."""
        passed = ("PATH", "SYSTEMROOT", *(_FOR_CUDA if limits.device == CUDA else ()))
        folder = tempfile.TemporaryDirectory(prefix="course-check-", ignore_cleanup_errors=True)
        password = secrets.token_bytes(_PASSWORD)
        # Ctrl-C reaches the command alone, which then ends the interpreter.
        no_window = {"creationflags": getattr(subprocess, "CREATE_NO_WINDOW", 0)}
        alone: dict[str, Any] = {"start_new_session": True} if hasattr(os, "setsid") else no_window
        with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
            environment = {
                **ENVIRONMENT,
                **{name: os.environ[name] for name in passed if name in os.environ},
            }
            process = start(_code(limits), folder.name, environment, stdin=subprocess.PIPE, **alone)
            assert process.stdin is not None
            with process.stdin as stdin:
                stdin.write(f"{server.getsockname()[1]} {password.hex()}\n".encode())
            try:
                connected = _caller(server, password, time.monotonic() + _PATIENCE)
            except TimeoutError:
                process.kill()
                raise BoxUnavailable(
                    f"{sys.executable} does not start. Next: install the course again"
                ) from None
        with connected:
            connected.settimeout(_PATIENCE)
            with contextlib.suppress(OSError):  # its end is told at the first message
                connected.recv(1)  # it is ready
            connected.setblocking(False)
            data = cast(io.RawIOBase, connected.makefile("rwb", buffering=0))
        channel, times = Channel(data, data), time_files(process.pid)
        connection = Connection(channel, limits, lambda s: _end(process, folder, s), times)
        if limits.device == CUDA:
            from .gpu import start_cuda

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
    """Start a fresh interpreter that runs this code, and whose output nobody sees."""
    command = [sys.executable, "-I", "-B", "-X", "utf8", "-c", code]
    options |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=folder, env=environment, **options)


def site_packages() -> list[str]:
    """Return where packages are installed that an attempt may import."""
    return [path for path in sys.path if path.endswith("site-packages")]


def _caller(server: socket.socket, password: bytes, deadline: float) -> socket.socket:
    """Return the first connection that sends the password. Raises TimeoutError."""
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


def _code(limits: Limits) -> str:
    root, fields = (
        str(Path(__file__).parents[2]),
        {**dataclasses.asdict(limits), "device": str(limits.device)},
    )
    return (
        f"import sys; sys.path[:0] = {[root, *site_packages()]!r}; from "
        f"manyheads.box.worker.standalone import main; main({fields!r}, {sorted(box_modules())!r})"
    )


def _end(
    process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str], seconds: float
) -> int | None:
    """End the process.

    Returns its exit code as Popen has it, None on Windows, where killing decides the code.
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
