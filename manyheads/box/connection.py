"""The judge's end of one attempt's connection. Every read has a deadline on the judge's clock, and every length a cap."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from .channel import Channel
from .replies import BadReply, read_reply, split
from .worker import wire
from .worker.answers import Reply
from .worker.limits import MIB, Limits
from .worker.messages import Batch, Message
from .worker.training_messages import Training

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

    def ask(self, message: Message | Training, seconds: float) -> Reply:
        """Send a message and read its reply. Raises AttemptEnded."""
        return self.ask_for(read_reply, message, seconds)

    def ask_all(self, packed: Sequence[bytes], read: Callable[[bytes], Answer], seconds: float) -> list[Answer]:
        """Send packed messages together and read the answer to each with `read`, which may raise BadReply.

        `seconds` is for all of them. Raises AttemptEnded.
        """
        data = b"".join([wire.encode(Batch(len(packed))), *packed])
        return self._exchange(lambda payload: [read(each) for each in split(payload, len(packed))], data, seconds)

    def ask_for(self, read: Callable[[bytes], Answer], message: Message | Training, seconds: float) -> Answer:
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
    """The seconds until the deadline. Raises TimeoutError if none are left."""
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
