"""The judge's end of one attempt's socket: every byte on the judge's clock, every length capped."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from .replies import BadReply, read_reply
from .worker import wire
from .worker.limits import MIB, Limits
from .worker.messages import Message, Reply

Answer = TypeVar("Answer")

GRACE = 2.0  # seconds for the kernel to take an attempt down and say how it ended


class End(StrEnum):
    """Why an attempt's process answers no more."""

    TIMEOUT = "timeout"
    CRASHED = "crashed"
    BAD_REPLY = "bad reply"


class AttemptEnded(Exception):
    """The attempt's process is gone. `str()` is one sentence that a student may read."""

    def __init__(self, end: End, sentence: str) -> None:
        super().__init__(sentence)
        self.end = end


class Connection:
    """Ask one attempt's process. After AttemptEnded it is of no further use."""

    def __init__(self, data: socket.socket, limits: Limits, wait_status: Callable[[float], int | None]) -> None:
        """`wait_status(seconds)` ends the process if need be and says how it ended, None if it cannot tell."""
        self._data, self._limits, self._wait_status = data, limits, wait_status
        self._data.setblocking(False)

    def ask(self, message: Message, seconds: float) -> Reply:
        """Send a message and read its reply. Raises AttemptEnded."""
        return self.ask_for(read_reply, message, seconds)

    def ask_for(self, read: Callable[[bytes], Answer], message: Message, seconds: float) -> Answer:
        """Send a message and read its answer with `read`, which may raise BadReply. Raises AttemptEnded."""
        deadline = time.monotonic() + seconds
        try:
            self._refuse_early_reply()
            self._send(wire.encode(message), deadline)
            (length,) = wire.LENGTH.unpack(self._read(wire.LENGTH.size, deadline))
            if length > self._limits.reply_mib * MIB:
                raise BadReply(f"its answer is larger than {self._limits.reply_mib} MiB")
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
        self._wait_status(GRACE)

    def _refuse_early_reply(self) -> None:
        try:
            if self._data.recv(1, socket.MSG_PEEK):
                raise BadReply("it answered before it was asked")
        except BlockingIOError:
            return

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            _wait_for(self._data, select.POLLOUT, deadline)
            view = view[self._data.send(view) :]

    def _read(self, count: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < count:
            _wait_for(self._data, select.POLLIN, deadline)
            chunk = self._data.recv(min(count - len(data), MIB))
            if not chunk:
                raise ConnectionResetError
            data += chunk
        return bytes(data)

    def _how_it_ended(self) -> str:
        self._data.close()
        status = self._wait_status(GRACE)
        if status is None:
            return "The attempt's process ended in the middle of a call."
        if os.WIFSIGNALED(status):
            return f"The attempt's process was ended by {_signal_name(os.WTERMSIG(status))}."
        return f"The attempt ended its own process (exit status {os.WEXITSTATUS(status)}) in place of answering."


def _wait_for(sock: socket.socket, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(sock, event)
    remaining = deadline - time.monotonic()
    if remaining <= 0 or not poll.poll(remaining * 1000):
        raise TimeoutError


def _signal_name(number: int) -> str:
    reasons = {signal.SIGSEGV: " (a crash in native code)", signal.SIGKILL: " (out of memory, killed, or it hung up)"}
    try:
        return signal.Signals(number).name + reasons.get(signal.Signals(number), "")
    except ValueError:
        return f"signal {number}"
