"""Supervises the attempts that a zygote forks: starts each, ends each, and reports how it ended.

Every attempt has a lifeline, a socket to the judge. When the judge closes it or ends,
the supervisor kills the attempt. The attempt is PID 1 of its own PID namespace, so
everything that it started ends too. Over the lifeline the supervisor sends what
the kernel says of the attempt's time (schedstat and stat, opened) when it has started,
and its wait status, as a decimal number, when it has ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from . import confine
from .limits import Limits, time_files

# Runs in the attempt's process, with the pipes to receive from and to send to; never returns.
Run = Callable[[Limits, int, int], None]


@dataclass(frozen=True)
class _Attempt:
    """An attempt whose process runs."""

    pid: int
    ended: int  # a pidfd: readable when the process has ended
    lifeline: socket.socket
    # its working folder, if it has no /tmp of its own
    folder: tempfile.TemporaryDirectory[str] | None


class Supervisor:
    """Serves start requests from the control socket until it closes, then ends all attempts."""

    def __init__(
        self, control: socket.socket, run: Run, namespaces: confine.PidNamespaces | None
    ) -> None:
        """`namespaces`: None if attempts share the PID namespace."""
        self._control, self._run, self._namespaces = control, run, namespaces
        self._attempts: list[_Attempt] = []
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Serve until the judge closes the control socket."""
        while True:
            ready = {descriptor for descriptor, _ in self._poll.poll()}
            for attempt in list(self._attempts):
                if attempt.ended in ready:
                    self._reap(attempt)
                elif attempt.lifeline.fileno() in ready:
                    self._kill(attempt)
            if self._control.fileno() in ready and not self._accept():
                break
        for attempt in list(self._attempts):
            self._kill(attempt)
            self._reap(attempt)

    def _accept(self) -> bool:
        """Start the attempt that the judge requests.

        Returns False if the judge has closed the socket.
        """
        request, descriptors, _, _ = socket.recv_fds(self._control, 4096, 3)
        if request:
            receives, sends, lifeline = descriptors
            self._start(
                Limits(**json.loads(request)), receives, sends, socket.socket(fileno=lifeline)
            )
        return bool(request)

    def _start(self, limits: Limits, receives: int, sends: int, lifeline: socket.socket) -> None:
        folder = None if self._namespaces else tempfile.TemporaryDirectory(prefix="course-check-")
        if self._namespaces is not None:
            self._namespaces.next()
        pid = os.fork()
        if pid == 0:
            if folder is not None:
                os.chdir(folder.name)
            self._run(limits, receives, sends)
        os.close(receives)
        os.close(sends)
        _send_time_files(lifeline, pid)
        attempt = _Attempt(pid, os.pidfd_open(pid), lifeline, folder)
        self._attempts.append(attempt)
        self._poll.register(attempt.ended, select.POLLIN)
        self._poll.register(attempt.lifeline, select.POLLIN)

    def _kill(self, attempt: _Attempt) -> None:
        """Kill the attempt. `_reap` follows when the kernel reports its end."""
        self._poll.unregister(attempt.lifeline)
        # the child has not been waited for, so its pid cannot have been reused
        os.kill(attempt.pid, signal.SIGKILL)

    def _reap(self, attempt: _Attempt) -> None:
        self._attempts.remove(attempt)
        status = os.waitpid(attempt.pid, 0)[1]
        self._poll.unregister(attempt.ended)
        os.close(attempt.ended)
        if attempt.folder is not None:
            # without a PID namespace its children do not end with it
            with contextlib.suppress(ProcessLookupError):
                os.killpg(attempt.pid, signal.SIGKILL)
            attempt.folder.cleanup()
        with contextlib.suppress(KeyError):
            self._poll.unregister(attempt.lifeline)
        with attempt.lifeline, contextlib.suppress(OSError):
            attempt.lifeline.sendall(str(status).encode())


def _send_time_files(lifeline: socket.socket, pid: int) -> None:
    files = time_files(pid)
    with contextlib.suppress(OSError):  # the judge is gone
        socket.send_fds(lifeline, [b"1"], files)
    for file in files:
        os.close(file)
