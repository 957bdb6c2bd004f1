"""The `process` level by forking ourselves: `import torch` is paid once, by us, and every attempt is a few milliseconds.

Only for a student's own check. An attempt starts with a copy of our memory, so nothing secret may be in it: the judge,
which holds the hidden checks, never uses this box.
"""

from __future__ import annotations

import os
import socket
import threading
from types import TracebackType
from typing import Self

import torch

from .connection import Connection
from .level import Box, Level
from .process import ENVIRONMENT, ProcessBox
from .warm import start_attempt
from .worker.limits import Limits
from .worker.wire import READY


def open_own_box() -> Box:
    """A box for the student's own check: forked where that is safe, a new interpreter for every attempt elsewhere."""
    return ForkedBox() if threading.active_count() == 1 and _can_watch() else ProcessBox()


def _can_watch() -> bool:
    """Whether the keeper of an attempt can wait for its end: Linux 5.3."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


class ForkedBox:
    """Forks once, at the start, what then forks the attempts. From then on we compute with one thread, too."""

    level = Level.PROCESS
    start_seconds = 1.0

    def __init__(self) -> None:
        torch.set_num_threads(1)  # a process in which OpenMP has started threads has children that hang
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._zygote = os.fork()
        if self._zygote == 0:
            self._control.close()
            _serve(theirs)
        theirs.close()
        self._control.recv(len(READY))

    def attempt(self, limits: Limits) -> Connection:
        """A connection to a new process."""
        return start_attempt(self._control, limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._control.close()
        os.waitpid(self._zygote, 0)


def _serve(control: socket.socket) -> None:
    """The zygote: never returns."""
    from .worker.zygote import main  # not at the top: what it imports is there on Linux alone

    try:
        os.setsid()  # Ctrl-C is for the command, which then ends us
        os.environ.clear()
        os.environ.update(ENVIRONMENT, PATH=os.defpath)
        main(control.detach(), Level.PROCESS)
    finally:
        os._exit(0)
