"""The judge's side of a zygote: request attempts from it, and end them.

A request goes over the control socket, together with the attempt's ends of two pipes and of a
lifeline. The zygote forks, and sends the files that count the attempt's time over the lifeline.
When the judge shuts its end of the lifeline down, the zygote's supervisor kills the attempt and
answers with its exit status. `worker/zygote.py` is the other side.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import select
import socket
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from .connection import Channel, Connection
from .level_and_device_names import BoxUnavailable, Level
from .worker.limits import CUDA, Limits
from .worker.wire import READY

START_SECONDS = 90.0  # for a zygote: a cold disk reads torch slowly
# for the kernel to clean up after an attempt, in addition to connection.GRACE
SLOW_END_SECONDS = 30.0
CUDA_GRACE = 30.0  # seconds: freeing much GPU memory takes long, and the next attempt waits for it
# systemd's range for users that exist only while one service runs (DynamicUser)
_FIRST_UID, _UIDS = 61184, 4096
# as large as a socket's buffer, so that a message of usual size is sent in one piece
_PIPE_BYTES = 1 << 18
_F_SETPIPE_SZ = 1031


class WarmBox(ABC):
    """A box with a zygote, which forks a process for each attempt."""

    level: Level
    _control: socket.socket  # to the zygote
    _lifeline: Lifeline | None = None  # of the latest attempt

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection to a new process.

        If the latest attempt is being ended, it must not run beside the next one. So this method
        first waits up to SLOW_END_SECONDS for its end. If it does not end, or if the zygote itself
        has ended, a new zygote is started. An attempt whose connection is still open is left
        running.

        Raises:
            BoxUnavailable: no new zygote starts.
            OSError: the new zygote does not fork.
        """
        if not (self._lifeline and self._lifeline.still_ends(SLOW_END_SECONDS)):
            with contextlib.suppress(OSError):  # the zygote ends just now
                if self._is_there():
                    return self._new_attempt(limits)
        self._close()
        self._start()
        return self._new_attempt(limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._close()

    @abstractmethod
    def _start(self) -> None:
        """Start the zygote. Raises BoxUnavailable."""

    @abstractmethod
    def _is_there(self) -> bool:
        """Return whether the zygote has not ended."""

    @abstractmethod
    def _close(self) -> None:
        """End the zygote and all its attempts."""

    def _has_started(self) -> bool:
        """Return whether the zygote reports within START_SECONDS that it is ready."""
        self._control.settimeout(START_SECONDS)
        try:
            return self._control.recv(len(READY)) == READY
        except OSError:
            return False

    def _new_attempt(self, limits: Limits) -> Connection:
        """Have the zygote fork a process, and return a connection to it.

        `_lifeline` is then the lifeline of this process. Raises OSError if the zygote has ended, or
        does not answer within START_SECONDS.
        """
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        data = Channel(_file(ours_in, "rb"), _file(ours_out, "wb"))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(START_SECONDS)
        try:
            request = json.dumps(dataclasses.asdict(limits)).encode()
            socket.send_fds(self._control, [request], [theirs_in, theirs_out, theirs.fileno()])
        finally:
            theirs.close()
            os.close(theirs_in)
            os.close(theirs_out)
        has_forked, time_files, _, _ = socket.recv_fds(ours, 1, 2)
        if not has_forked:
            raise ConnectionResetError
        lifeline = Lifeline(ours)
        least = CUDA_GRACE if limits.device == CUDA else 0.0
        self._lifeline = lifeline
        return Connection(
            data, limits, lambda seconds: lifeline.end(max(seconds, least)), time_files
        )


class Lifeline:
    """The judge's end of a socket on which the supervisor ends one attempt and reports its end."""

    def __init__(self, ours: socket.socket) -> None:
        self._ours = ours
        self._is_ending = False

    def end(self, seconds: float) -> int | None:
        """Have the supervisor kill the attempt, and return its exit code.

        The exit code follows the convention of Popen: −9 after signal 9. Returns None if no status
        arrives within `seconds`, if the supervisor has ended, or if an earlier call has returned
        the status.
        """
        self._is_ending = True
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)
        return self._wait(seconds)

    def still_ends(self, seconds: float) -> bool:
        """Return whether the attempt is still being ended after up to `seconds` more seconds.

        Returns False at once if `end` has not been called. The supervisor reports the end of an
        attempt when the processes that it started have been killed, too.
        """
        if self._is_ending:
            self._wait(seconds)
        return self._is_ending

    def _wait(self, seconds: float) -> int | None:
        """Wait up to `seconds` for the report of the attempt's end, and return its exit code.

        Returns None if no report arrives. Unless the time is over, the socket is then closed.
        """
        try:
            if not select.select([self._ours], [], [], seconds)[0]:
                return None
            word = self._ours.recv(200)
        except (OSError, ValueError):  # this socket was closed before
            word = b""
        self._ours.close()
        # The supervisor has reported the end of the attempt, or has ended with all attempts.
        self._is_ending = False
        return os.waitstatus_to_exitcode(int(word)) if word.isdigit() else None


def _file(pipe: int, mode: str) -> io.FileIO:
    """Enlarge a pipe if the system allows it, and return our end as a file that does not block."""
    import fcntl  # Windows has none

    os.set_blocking(pipe, False)
    with contextlib.suppress(OSError):  # a user may have no more pages for pipes
        fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE_BYTES)
    return io.FileIO(pipe, mode)


def uid_for_box() -> int | None:
    """Return an unprivileged uid for this process's box, or None if this process is not root.

    The uid depends on the process id, so judges that run side by side rarely share one.
    """
    return None if os.geteuid() else _FIRST_UID + os.getpid() % _UIDS


def refuse_alone() -> None:
    """Raise BoxUnavailable if this process is root of a user namespace that has no other user.

    `unshare -r` makes such a namespace. Nothing is raised if /proc/self/uid_map cannot be read.
    """
    try:
        mapped = sum(
            int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines()
        )
    except (OSError, ValueError, IndexError):
        return
    if os.geteuid() == 0 and mapped == 1:
        problem = (
            "root is the only user of this user namespace, and an attempt has to be another one"
        )
        raise BoxUnavailable(
            f"{problem}. Next: the same command outside of it, as an ordinary user"
        )
