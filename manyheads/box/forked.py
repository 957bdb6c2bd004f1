"""The `process` level, by forking this process: torch is imported once, and each attempt costs a few milliseconds.

This box is only for a student's own check. An attempt starts with a copy of this process's memory, which therefore must
hold nothing secret: the judge, which holds the hidden checks, never uses this box.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Collection
from types import TracebackType
from typing import Self

import torch

from .connection import Connection
from .contents import box_modules
from .level import Box, Level
from .process import ENVIRONMENT, ProcessBox
from .warm import start_attempt
from .worker.imports import allow_only
from .worker.limits import Limits
from .worker.wire import READY


def open_own_box(*, meta: bool = False) -> Box:
    """Return a box for the student's own check. It forks where that is safe, else it starts a new interpreter for each attempt.

    meta: calls with meta tensors will be asked. What these import is then ready before an attempt's time begins.
    """
    return ForkedBox(meta) if threading.active_count() == 1 and _has_pidfd() else ProcessBox()


def _has_pidfd() -> bool:
    """Return whether the supervisor can wait for the end of an attempt by a pidfd, as Linux can since 5.3."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


class ForkedBox:
    """Forks a zygote at the start, which then forks the attempts. It sets torch to one thread in this process too."""

    level = Level.PROCESS
    start_seconds = 1.0

    def __init__(self, meta: bool) -> None:
        torch.set_num_threads(1)  # after OpenMP has started threads, forked children hang
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        modules = box_modules()
        self._zygote = os.fork()
        if self._zygote == 0:
            self._control.close()
            _serve(theirs, meta, modules)
        theirs.close()
        self._control.recv(len(READY))

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection to a new process."""
        return start_attempt(self._control, limits)[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._control.close()
        os.waitpid(self._zygote, 0)


def _serve(control: socket.socket, meta: bool, modules: Collection[str]) -> None:
    """Run the zygote. Never returns. modules: what attempts may import."""
    from .worker.zygote import main  # imported late, because it needs modules that only Linux has

    try:
        if meta:
            from .worker.meta import make_ready

            make_ready()
        allow_only(modules)
        os.setsid()  # Ctrl-C reaches only the command, which then ends this process
        os.environ.clear()
        os.environ.update(ENVIRONMENT, PATH=os.defpath)
        main(control.detach(), Level.PROCESS)
    finally:
        os._exit(0)
