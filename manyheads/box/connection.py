"""The judge's end of one attempt's connection: every read has a deadline on the judge's clock, and every length a cap."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol, TypeVar

from .replies import BadReply, read_reply, split
from .worker import wire
from .worker.answers import Reply
from .worker.limits import MIB, Limits
from .worker.messages import Batch, Message

# The judge's end of a connection to an attempt, as bytes. Each operation has a deadline of its own.

_PIPE_BYTES = 1 << 18  # as large as a socket's buffer, so that a message of usual size is sent in one piece
_F_SETPIPE_SZ = 1031


class Channel(Protocol):
    """Sends and receives bytes."""

    def has_data(self) -> bool:
        """Return whether there are bytes to receive now."""

    def send(self, data: memoryview, seconds: float) -> int:
        """Send some of the data; return how many bytes. Raises TimeoutError, and OSError if the other side has closed."""

    def receive(self, count: int, seconds: float) -> bytes:
        """Return at most `count` bytes; none if the other side has closed. Raises TimeoutError, OSError."""

    def close(self) -> None:
        """Close it."""


class SocketChannel:
    """A connected socket: for an attempt that is an interpreter of its own, on any system."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def has_data(self) -> bool:
        """Return whether bytes wait to be received."""
        self._socket.setblocking(False)
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False

    def send(self, data: memoryview, seconds: float) -> int:
        """Send what can be sent within `seconds`, and return how many bytes that was. Raises TimeoutError."""
        self._socket.settimeout(seconds)
        return self._socket.send(data)

    def receive(self, count: int, seconds: float) -> bytes:
        """Receive at most `count` bytes within `seconds`; none at the end. Raises TimeoutError."""
        self._socket.settimeout(seconds)
        return self._socket.recv(count)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


class PipeChannel:
    """Two pipes: for an attempt in the box, which must hold no socket of ours (see `Pipes` in `worker.zygote`)."""

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
        """Return whether bytes wait to be received."""
        return bool(_wait(self._in.fileno(), select.POLLIN, 0.0) & select.POLLIN)

    def send(self, data: memoryview, seconds: float) -> int:
        """Send what can be sent within `seconds`, and return how many bytes that was. Raises TimeoutError."""
        if not _wait(self._out.fileno(), select.POLLOUT, seconds):
            raise TimeoutError
        return self._out.write(data) or 0

    def receive(self, count: int, seconds: float) -> bytes:
        """Receive at most `count` bytes within `seconds`; none at the end. Raises TimeoutError."""
        if not _wait(self._in.fileno(), select.POLLIN, seconds):
            raise TimeoutError
        return os.read(self._in.fileno(), count)

    def close(self) -> None:
        """Close this end."""
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


# The judge's end of one attempt's connection. Every read has a deadline on the judge's clock, and every length a cap.

Answer = TypeVar("Answer")

_WINDOWS_ERROR = 0xC  # the first digit of an exit code that is an NTSTATUS of severity error
_WINDOWS_REASONS = {
    0xC0000005: " (a crash in native code)",
    0xC00000FD: " (its stack is full: is there an endless recursion?)",
}
GRACE = 2.0  # seconds for the kernel to end an attempt and report its exit status


class End(StrEnum):
    """Why an attempt's process no longer answers."""

    TIMEOUT = "timeout"
    CRASHED = "crashed"
    BAD_REPLY = "bad reply"


class AttemptEnded(Exception):
    """The attempt's process has ended. `str()` is one sentence that a student may read."""

    def __init__(self, end: End, sentence: str) -> None:
        super().__init__(sentence)
        self.end = end


class Connection:
    """Sends messages to one attempt's process and reads its replies. Unusable after AttemptEnded."""

    def __init__(self, data: Channel, limits: Limits, exit_code: Callable[[float], int | None]) -> None:
        """`exit_code(seconds)` ends the process if it still runs, and returns its exit code as Popen has it, None if unknown."""
        self._data, self._limits, self._exit_code = data, limits, exit_code
        self.received = 0  # bytes of all replies so far

    def ask(self, message: Message, seconds: float) -> Reply:
        """Send a message and read its reply. Raises AttemptEnded."""
        return self.ask_for(read_reply, message, seconds)

    def ask_all(self, packed: Sequence[bytes], read: Callable[[bytes], Answer], seconds: float) -> list[Answer]:
        """Send packed messages together and read the answer to each with `read`, which may raise BadReply.

        `seconds` is for all of them. Raises AttemptEnded.
        """
        data = b"".join([wire.encode(Batch(len(packed))), *packed])
        return self._exchange(lambda payload: [read(each) for each in split(payload, len(packed))], data, seconds)

    def ask_for(self, read: Callable[[bytes], Answer], message: Message, seconds: float) -> Answer:
        """Send a message and read its answer with `read`, which may raise BadReply. Raises AttemptEnded."""
        return self._exchange(read, wire.encode(message), seconds)

    def _exchange(self, read: Callable[[bytes], Answer], data: bytes, seconds: float) -> Answer:
        deadline = time.monotonic() + seconds
        try:
            self._refuse_early_reply()
            self._send(data, deadline)
            (length,) = wire.LENGTH.unpack(self._read(wire.LENGTH.size, deadline))
            if length > self._limits.reply_mib * MIB:
                raise BadReply(f"its answer is larger than {self._limits.reply_mib} MiB")
            self.received += length
            return read(self._read(length, deadline))
        except BadReply as error:
            self.close()
            raise AttemptEnded(End.BAD_REPLY, f"The attempt sent something that is not an answer: {error}.") from None
        except TimeoutError:
            self.close()
            raise AttemptEnded(
                End.TIMEOUT, f"No answer within {seconds:.2g} seconds: is there an endless loop?"
            ) from None
        except OSError:
            raise AttemptEnded(End.CRASHED, self._how_it_ended()) from None

    def close(self) -> None:
        """End the attempt's process and all that it started."""
        self._data.close()
        self._exit_code(GRACE)

    def _refuse_early_reply(self) -> None:
        if self._data.has_data():
            raise BadReply("it answered before it was asked")

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            view = view[self._data.send(view, _left(deadline)) :]

    def _read(self, count: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < count:
            chunk = self._data.receive(min(count - len(data), MIB), _left(deadline))
            if not chunk:
                raise ConnectionResetError
            data += chunk
        return bytes(data)

    def _how_it_ended(self) -> str:
        self._data.close()
        code = self._exit_code(GRACE)
        if code is None:
            return "The attempt's process ended in the middle of a call."
        if code < 0:
            return f"The attempt's process was ended by {_signal_name(-code)}."
        if code >> 28 == _WINDOWS_ERROR:
            return f"The attempt's process was ended by Windows, with 0x{code:08X}{_WINDOWS_REASONS.get(code, '')}."
        return f"The attempt ended its own process (exit status {code}) in place of answering."


def _left(deadline: float) -> float:
    """Return the seconds until the deadline. Raises TimeoutError if none are left."""
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left


def _signal_name(number: int) -> str:
    reasons = {
        "SIGSEGV": " (a crash in native code)",
        "SIGKILL": " (out of memory, killed, or it closed the connection)",
    }
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    return name + reasons.get(name, "")
