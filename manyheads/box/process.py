"""The `process` level: a fresh interpreter with rlimits and a deadline. It is for a student's own check, not for grading."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from .connection import Connection, SocketChannel
from .contents import box_modules
from .cuda import start_cuda
from .interpreter import end, start
from .names import Level
from .worker.limits import CUDA, Limits

# torch.compile gives back what it is given: its compiler needs programs and folders that no box has.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}
_FOR_CUDA = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")


class ProcessBox:
    """Starts each attempt as a new Python process, in its own session and its own empty folder."""

    level = Level.PROCESS
    start_seconds = 30.0

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection to a new process."""
        passed = ("PATH", *_FOR_CUDA) if limits.device == CUDA else ("PATH",)
        environment = {**ENVIRONMENT, **{name: os.environ[name] for name in passed if name in os.environ}}
        folder = tempfile.TemporaryDirectory(prefix="course-check-", ignore_cleanup_errors=True)
        process, data = start(partial(_code, limits), folder.name, environment)
        connection = Connection(SocketChannel(data), limits, lambda seconds: _end(process, folder, seconds))
        if limits.device == CUDA:
            start_cuda(connection)
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        return


def _code(limits: Limits, descriptor: int | None) -> str:
    root = str(Path(__file__).parents[2])
    return (
        f"import sys; sys.path[:0] = {[root, *site_packages()]!r}; "
        f"from manyheads.box.worker.standalone import main; "
        f"main({descriptor}, {dataclasses.asdict(limits)!r}, {sorted(box_modules())!r})"
    )


def site_packages() -> list[str]:
    """Return where packages are installed that an attempt may import."""
    return [path for path in sys.path if path.endswith("site-packages")]


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str], seconds: float) -> int | None:
    """End the process. Returns its exit code as Popen has it."""
    try:
        code: int | None = process.wait(0.05)
    except subprocess.TimeoutExpired:
        code = end(process, seconds)
    folder.cleanup()
    return code
