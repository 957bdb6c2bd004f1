"""Start and end a fresh interpreter that is connected to this process. What Unix and Windows do differently is here.

On Unix the interpreter inherits a descriptor, and is killed with all of its session. Windows has neither: there the
interpreter connects over the loopback, with a password from its standard input, and is killed alone.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from .names import BoxUnavailable

IS_UNIX = hasattr(os, "fork")
PATIENCE = 60.0  # seconds for an interpreter to start; torch is not imported yet
_PASSWORD = 32  # bytes

Code = Callable[[int | None], str]  # what the interpreter runs, given its descriptor, or None where it calls back


def start(code: Code, folder: str, environment: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start it. Returns the process and this end of the connection. Raises BoxUnavailable."""
    return _inheriting(code, folder, environment) if IS_UNIX else _calling_back(code, folder, environment)


def end(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """End it now. Returns its exit code as Popen has it, None on Windows, where killing decides the code."""
    if not IS_UNIX:
        process.kill()
        process.wait(seconds)
        return None
    os.killpg(process.pid, signal.SIGKILL)
    return process.wait(seconds)


def _inheriting(
    code: Code, folder: str, environment: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            _command(code(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            start_new_session=True,
            env=environment,
        )
    return process, ours


def _calling_back(
    code: Code, folder: str, environment: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    password = secrets.token_bytes(_PASSWORD)
    with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
        process = subprocess.Popen(
            _command(code(None)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            creationflags=getattr(
                subprocess, "CREATE_NO_WINDOW", 0
            ),  # Ctrl-C reaches only the command, which then ends the interpreter
            env={**environment, **{name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}},
        )
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write(f"{server.getsockname()[1]} {password.hex()}\n".encode())
        try:
            return process, _caller(server, password, time.monotonic() + PATIENCE)
        except TimeoutError:
            process.kill()
            raise BoxUnavailable(f"{sys.executable} does not start. Next: install the course again") from None


def _caller(server: socket.socket, password: bytes, deadline: float) -> socket.socket:
    """Return the first connection that sends the password. Raises TimeoutError."""
    while (left := deadline - time.monotonic()) > 0:
        server.settimeout(left)
        caller = server.accept()[0]
        caller.settimeout(left)
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError), caller.makefile("rb") as said:
            if hmac.compare_digest(said.read(_PASSWORD), password):
                return caller
        caller.close()
    raise TimeoutError


def _command(code: str) -> list[str]:
    return [sys.executable, "-I", "-B", "-X", "utf8", "-c", code]
