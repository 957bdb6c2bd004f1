"""Boxes that fork attempts without namespaces: for a student's own check, and for a container whose
root can make none.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection
from pathlib import Path

import torch

from .connection import Box
from .contents import box_modules
from .names import BoxUnavailable, Level
from .process import ENVIRONMENT, ProcessBox, site_packages, start
from .warm import WarmBox, refuse_alone, uid_for_box
from .worker.attempt import allow_only

_PR_SET_NO_NEW_PRIVS = 38


def open_own_box(*, meta: bool = False) -> Box:
    """Return a box for the student's own check.

    It forks where that is safe, else it starts a new interpreter for each attempt.

    meta: calls with meta tensors will be asked. What these import is then ready before an attempt's
        time begins.
    """
    return ForkedBox(meta) if threading.active_count() == 1 and _has_pidfd() else ProcessBox()


def _has_pidfd() -> bool:
    """Return whether the supervisor can wait for the end of an attempt by a pidfd, as Linux can
    since 5.3.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.close(os.pidfd_open(os.getpid()))
        return True
    return False


class ForkedBox(WarmBox):
    """Forks this process, so that torch is imported once, and sets torch to one thread in it.

    An attempt starts with a copy of this process's memory, which therefore must hold
    nothing secret: the judge, which holds the hidden checks, never uses this box.
    """

    level = Level.PROCESS

    def __init__(self, meta: bool) -> None:
        self._meta = meta
        self._start()

    def _start(self) -> None:
        torch.set_num_threads(1)  # after OpenMP has started threads, forked children hang
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        modules = box_modules()
        self._zygote = os.fork()
        if self._zygote == 0:
            self._control.close()
            _serve(theirs, self._meta, modules)
        theirs.close()

    def _is_there(self) -> bool:
        return os.waitid(os.P_PID, self._zygote, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def _close(self) -> None:
        self._control.close()
        os.waitpid(self._zygote, 0)


def _serve(control: socket.socket, meta: bool, modules: Collection[str]) -> None:
    """Run the zygote. Never returns. modules: what attempts may import."""
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
    """Level `user`: a zygote of a uid that owns nothing.

    What others may not read or write, its attempts may not.
    """

    level = Level.USER

    def __init__(self) -> None:
        """Start it.

        Raises BoxUnavailable where this process is not root, and so can start none under another
        uid.
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
            self._zygote = start(_code(theirs.fileno()), "/", ENVIRONMENT, **identity, **alone)
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


def _code(descriptor: int) -> str:
    """Return what the zygote runs. No program is to give it rights: none such as sudo does."""
    root = str(Path(__file__).parents[2])
    return (
        f"import ctypes; ctypes.CDLL(None).prctl({_PR_SET_NO_NEW_PRIVS}, 1, 0, 0, 0); import gc, "
        f"sys; gc.disable(); sys.path[:0] = {[root, *site_packages()]!r}; from "
        "manyheads.box.worker import attempt, zygote; "
        f"attempt.allow_only({sorted(box_modules())!r}); zygote.main({descriptor}, "
        f"{str(Level.USER)!r})"
    )
