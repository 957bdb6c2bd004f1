"""The `process` level: a fresh interpreter with rlimits and a deadline. For a student's own check, not for grading."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from .connection import Connection
from .cuda import start_cuda
from .level import Level
from .worker.limits import CUDA, Limits

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_FOR_CUDA = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")


class ProcessBox:
    """Every attempt is a new Python process in a session and an empty folder of its own."""

    level = Level.PROCESS
    start_seconds = 30.0

    def attempt(self, limits: Limits) -> Connection:
        """A connection to a new process."""
        data, theirs = socket.socketpair()
        root = str(Path(__file__).parents[2])
        code = (
            f"import sys; sys.path[:0] = {[root, *_site()]!r}; "
            "from grader.box.worker.zygote import alone; from grader.box.worker.limits import Limits; "
            f"alone({theirs.fileno()}, Limits(**{dataclasses.asdict(limits)!r}))"
        )
        passed = ("PATH", *_FOR_CUDA) if limits.device == CUDA else ("PATH",)
        folder = tempfile.TemporaryDirectory(prefix="course-check-")
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-c", code],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder.name,
                start_new_session=True,
                env={**ENVIRONMENT, **{name: os.environ[name] for name in passed if name in os.environ}},
            )
        connection = Connection(data, limits, lambda seconds: _end(process, folder, seconds))
        if limits.device == CUDA:
            start_cuda(connection)
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        return


def _site() -> list[str]:
    return [path for path in sys.path if path.endswith("site-packages")]


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str], seconds: float) -> int | None:
    """The wait status, in the form of os.waitpid."""
    try:
        code = process.wait(0.05)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        code = process.wait(seconds)
    folder.cleanup()
    return -code if code < 0 else code << 8
