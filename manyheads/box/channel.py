"""The judge's end of a connection to an attempt, as bytes. Each operation has a deadline of its own."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from typing import Protocol

_PIPE_BYTES = 1 << 18  # as large as a socket's buffer, so that a message of usual size is sent in one piece
_F_SETPIPE_SZ = 1031


class Channel(Protocol):
    """Sends and receives bytes."""

    def has_data(self) -> bool:
        """Whether there are bytes to receive now."""

    def send(self, data: memoryview, seconds: float) -> int:
        """Send some of the data; return how many bytes. Raises TimeoutError, and OSError if the other side has closed."""

    def receive(self, count: int, seconds: float) -> bytes:
        """At most `count` bytes; none if the other side has closed. Raises TimeoutError, OSError."""

    def close(self) -> None:
        """Close it."""


class SocketChannel:
    """A connected socket: for an attempt that is an interpreter of its own, on any system."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def has_data(self) -> bool:
        self._socket.setblocking(False)
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False

    def send(self, data: memoryview, seconds: float) -> int:
        self._socket.settimeout(seconds)
        return self._socket.send(data)

    def receive(self, count: int, seconds: float) -> bytes:
        self._socket.settimeout(seconds)
        return self._socket.recv(count)

    def close(self) -> None:
        self._socket.close()


class PipeChannel:
    """Two pipes: for an attempt in the box, which must hold no socket of ours (see `worker.pipes`)."""

    def __init__(self) -> None:
        """Make them. `theirs`: the descriptors for the other side, to receive from and to send to; close them."""
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self.theirs = (theirs_in, theirs_out)
        self._in, self._out = os.fdopen(ours_in, "rb", buffering=0), os.fdopen(ours_out, "wb", buffering=0)
        for end in (ours_in, ours_out):
            os.set_blocking(end, False)
            with contextlib.suppress(OSError):  # a user may have no more pages for pipes
                _enlarge(end)

    def has_data(self) -> bool:
        return bool(_wait(self._in.fileno(), select.POLLIN, 0.0) & select.POLLIN)

    def send(self, data: memoryview, seconds: float) -> int:
        if not _wait(self._out.fileno(), select.POLLOUT, seconds):
            raise TimeoutError
        return self._out.write(data) or 0

    def receive(self, count: int, seconds: float) -> bytes:
        if not _wait(self._in.fileno(), select.POLLIN, seconds):
            raise TimeoutError
        return os.read(self._in.fileno(), count)

    def close(self) -> None:
        self._in.close()
        self._out.close()


def _wait(descriptor: int, event: int, seconds: float) -> int:
    """Wait for the event, an error or the end; 0 if the time is over."""
    poll = select.poll()
    poll.register(descriptor, event)
    ready = poll.poll(seconds * 1000)
    return ready[0][1] if ready else 0


def _enlarge(pipe: int) -> None:
    import fcntl  # Windows has none

    fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE_BYTES)
