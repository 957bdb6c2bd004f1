"""The `user` level: processes of an unprivileged uid, for a container whose root can make no namespaces."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from .connection import Connection
from .contents import box_modules
from .names import BoxUnavailable, Level
from .namespaces import START_SECONDS, refuse_alone, uid_for_box
from .process import ENVIRONMENT, site_packages
from .warm import start_attempt
from .worker.limits import Limits
from .worker.wire import READY

_PR_SET_NO_NEW_PRIVS = 38


class UserBox:
    """A zygote of a uid that owns nothing, which forks attempts. What others may not read or write, they may not."""

    level = Level.USER
    start_seconds = 5.0

    def __init__(self) -> None:
        """Start it. Raises BoxUnavailable where this process is not root, and so can start none under another uid."""
        uid = uid_for_box()
        if uid is None:
            raise BoxUnavailable(
                "level user needs root, which alone can start a process as another user. Next: course doctor"
            )
        refuse_alone()
        self._uid = uid
        self._start()

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection to a new process; a zygote that an attempt has ended is replaced first."""
        with contextlib.suppress(OSError):
            if self._zygote.poll() is None:
                return start_attempt(self._control, limits)[0]
        self._close()
        self._start()
        return start_attempt(self._control, limits)[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._close()

    def _start(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._zygote = subprocess.Popen(
                [sys.executable, "-I", "-B", "-X", "utf8", "-c", _code(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                env=ENVIRONMENT,
                user=self._uid,
                group=self._uid,
                extra_groups=[],
            )
        self._control.settimeout(START_SECONDS)
        try:
            ready = self._control.recv(len(READY))
        except OSError:
            ready = b""
        if ready != READY:
            self._close()
            raise BoxUnavailable(f"level user does not start here: may others enter {sys.prefix}? Next: course doctor")

    def _close(self) -> None:
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._zygote.pid, signal.SIGKILL)
        self._zygote.wait()


def _code(descriptor: int) -> str:
    """Return what the zygote runs. No program is to give it rights: none such as sudo does."""
    root = str(Path(__file__).parents[2])
    return (
        f"import ctypes; ctypes.CDLL(None).prctl({_PR_SET_NO_NEW_PRIVS}, 1, 0, 0, 0); "
        f"import gc, sys; gc.disable(); sys.path[:0] = {[root, *site_packages()]!r}; "
        f"from manyheads.box.worker import imports, zygote; imports.allow_only({sorted(box_modules())!r}); "
        f"zygote.main({descriptor}, {str(Level.USER)!r})"
    )
