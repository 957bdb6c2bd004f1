"""The judge's end of one attempt's connection: every read has a deadline, and every length a cap.

A deadline counts the attempt's own time: what it ran or slept, not what it waited for a processor.
So a busy machine costs no points. The clock on the wall bounds the rest, at ten times as much.
"""

from __future__ import annotations

import io
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self, TypeVar

from .host_processes import ran
from .level import Level
from .replies import BadReply, read_reply, split
from .worker import wire
from .worker.limits import MIB, Limits
from .worker.messages import Batch, Message, Reply, Traced, tensors_of

Answer = TypeVar("Answer")

WALL = 10  # how many times its own time an attempt may take by the clock on the wall
# All replies of an attempt together are at most so many times the largest allowed one. They are
# kept for the diagnosis: without a bound, one student's replies of 30 MiB took the judge to 5 GiB
# and 85 s. They count as the judge compares them, in float64: 30 MiB of bools are 240, of which
# several copies took it to 1.1 GiB.
ALL_REPLIES = 4
WIDE = 8  # bytes of a number in float64
GRACE = 2.0  # seconds for the kernel to end an attempt and report its exit status
_SOON = 0.01  # seconds until its own time is read again, at least
_WINDOWS_ERROR = 0xC  # the first digit of an exit code that is an NTSTATUS of severity error
_WINDOWS_REASONS = {
    0xC0000005: " (a crash in native code)",
    0xC00000FD: " (its stack is full: is there an endless recursion?)",
}
_SIGNAL_REASONS = {
    "SIGSEGV": " (a crash in native code)",
    "SIGKILL": " (out of memory, killed, or it closed the connection)",
}


class Channel:
    """The judge's end of two pipes, or of a socket. Its files do not block."""

    def __init__(self, receives: io.RawIOBase, sends: io.RawIOBase) -> None:
        self._receives, self._sends = receives, sends

    def send(self, data: memoryview, seconds: float) -> int:
        """Send what can be sent within `seconds`, and return how many bytes that was.

        Raises OSError.
        """
        return self._sends.write(data) or 0 if _is_ready(self._sends, True, seconds) else 0

    def receive(self, count: int, seconds: float) -> bytes:
        """Return at most `count` bytes; none where none come within `seconds`.

        Raises OSError, also at the end.
        """
        data = self._receives.read(count) if _is_ready(self._receives, False, seconds) else None
        if data == b"":
            raise ConnectionResetError
        return data or b""

    def close(self) -> None:
        """Close the files."""
        self._receives.close()
        self._sends.close()


def _is_ready(file: io.RawIOBase, to_write: bool, seconds: float) -> bool:
    """Wait until the file can be read, or written to, or its other side has closed."""
    if not hasattr(select, "poll"):  # on Windows
        return any(
            select.select([] if to_write else [file], [file] if to_write else [], [], seconds)
        )
    poll = select.poll()
    poll.register(file, select.POLLOUT if to_write else select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class OwnTime:
    """What an attempt ran or slept, of the seconds that an answer takes.

    The kernel tells how long its main thread waited for a processor (schedstat). Other threads of
    its own, and children, can keep that one waiting, so what all of them ran counts, too (stat).
    """

    def __init__(self, files: Sequence[int] = ()) -> None:
        """files: its schedstat and its stat, opened; none where this system has no such files."""
        self._files = files
        self._before = (0.0, 0.0)  # what it had waited and run when the last answer had come
        self.begin()

    def begin(self) -> None:
        """Begin to count anew, for the next answer."""
        self._before = self._now()

    def own_seconds(self, seconds: float) -> float:
        """Return how much of these seconds was its own."""
        waited, busy = (
            now - earlier for now, earlier in zip(self._now(), self._before, strict=True)
        )
        return min(seconds, max(seconds - waited, busy))

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            os.close(file)
        self._files = ()

    def _now(self) -> tuple[float, float]:
        try:
            schedstat, stat = (os.pread(file, 1000, 0) for file in self._files)
            return int(schedstat.split()[1]) / 1e9, ran(stat.decode(errors="replace"))
        except (OSError, ValueError, IndexError):  # it has ended, or nobody knows
            return self._before


class _Deadline:
    """Seconds of an attempt's own for one answer, and WALL times as many by the clock on the
    wall.
    """

    def __init__(self, own_time: OwnTime, seconds: float) -> None:
        self._own_time, self._seconds, self._started = own_time, seconds, time.monotonic()

    @property
    def passed(self) -> float:
        """The seconds that have passed."""
        return time.monotonic() - self._started

    def wait_seconds(self) -> float:
        """Return how long to wait before this is asked again.

        Raises TimeoutError, which says what limit was met.
        """
        seconds, passed = self._seconds, self.passed
        if passed < seconds:
            return seconds - passed
        if (own_seconds := self._own_time.own_seconds(passed)) >= seconds:
            raise TimeoutError(f"No answer within {seconds:.2g} seconds: is there an endless loop?")
        if passed >= WALL * seconds:
            message = f"No answer within {WALL * seconds:.2g} seconds"
            raise TimeoutError(f"{message}, for most of which it waited for a processor.")
        return max(_SOON, min(seconds - own_seconds, WALL * seconds - passed))


@dataclass
class Spent:
    """What all processes of one attempt have taken so far: seconds of their own, and bytes of
    replies.
    """

    seconds: float = 0.0
    received: int = 0


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
    """Sends messages to one attempt's process and reads its replies.

    Unusable after AttemptEnded.
    """

    def __init__(
        self,
        data: Channel,
        limits: Limits,
        exit_code: Callable[[float], int | None],
        time_files: Sequence[int] = (),
    ) -> None:
        """`exit_code(seconds)` ends the process if it still runs, and returns its exit code as
        Popen has it, None if unknown.

        time_files: see OwnTime.
        """
        self._data, self._limits, self._exit_code = data, limits, exit_code
        self._own_time = OwnTime(time_files)
        self.spent = Spent()

    def ask(self, message: Message, seconds: float) -> Reply:
        """Send a message and read its reply. Raises AttemptEnded."""
        return self.ask_for(read_reply, message, seconds)

    def ask_all(
        self, packed: Sequence[bytes], read: Callable[[bytes], Answer], seconds: float
    ) -> list[Answer]:
        """Send packed messages together and read the answer to each with `read`, which may raise
        BadReply.

        `seconds` is for all of them. Raises AttemptEnded.
        """
        data = b"".join([wire.encode(Batch(len(packed))), *packed])
        return self._exchange(
            lambda payload: [read(reply) for reply in split(payload, len(packed))], data, seconds
        )

    def ask_for(self, read: Callable[[bytes], Answer], message: Message, seconds: float) -> Answer:
        """Send a message and read its answer with `read`, which may raise BadReply.

        Raises AttemptEnded.
        """
        return self._exchange(read, wire.encode(message), seconds)

    def close(self) -> None:
        """End the attempt's process and all that it started."""
        self._data.close()
        self._own_time.close()
        self._exit_code(GRACE)

    def _exchange(self, read: Callable[[bytes], Answer], data: bytes, seconds: float) -> Answer:
        try:
            answer = read(self._answer(data, seconds))
            self._count_widened(answer)
            return answer
        except BadReply as error:
            self.close()
            raise AttemptEnded(
                End.BAD_REPLY, f"The attempt sent something that is not an answer: {error}."
            ) from None
        except TimeoutError as error:
            self.close()
            raise AttemptEnded(End.TIMEOUT, str(error)) from None
        except OSError:
            raise AttemptEnded(End.CRASHED, self._how_it_ended()) from None

    def _answer(self, data: bytes, seconds: float) -> bytes:
        """Send the data and return the bytes of the answer.

        Raises BadReply, TimeoutError, OSError.
        """
        deadline, view, most = (
            _Deadline(self._own_time, seconds),
            memoryview(data),
            self._limits.reply_mib,
        )
        try:
            if self._data.receive(1, 0.0):
                raise BadReply("it answered before it was asked")
            while view:
                view = view[self._data.send(view, deadline.wait_seconds()) :]
            (length,) = wire.LENGTH.unpack(self._receive(wire.LENGTH.size, deadline))
            if length > most * MIB:
                raise BadReply(f"its answer is larger than {most} MiB")
            self._count_received(length)
            return self._receive(length, deadline)
        finally:
            self.spent.seconds += self._own_time.own_seconds(deadline.passed)
            self._own_time.begin()

    def _count_widened(self, answer: object) -> None:
        """Count what the numbers of an answer take in float64 beyond what came.

        Raises BadReply if that is too much.
        """
        for message in answer if isinstance(answer, list) else [answer]:
            reply = message.reply if isinstance(message, Traced) else message
            tensors = tensors_of(reply) if isinstance(reply, Reply) else []
            if WIDE * sum(tensor.numel() for tensor in tensors) > self._limits.reply_mib * MIB:
                raise BadReply(
                    f"its numbers are larger than {self._limits.reply_mib} MiB in float64"
                )
            self._count_received(
                sum((WIDE - tensor.itemsize) * tensor.numel() for tensor in tensors)
            )

    def _count_received(self, length: int) -> None:
        """Count bytes of replies.

        Raises BadReply if all replies of the attempt are too large together.
        """
        most = ALL_REPLIES * self._limits.reply_mib
        self.spent.received += length
        if self.spent.received > most * MIB:
            raise BadReply(f"all its answers together are larger than {most} MiB")

    def _receive(self, count: int, deadline: _Deadline) -> bytes:
        received = bytearray()
        while len(received) < count:
            received += self._data.receive(min(count - len(received), MIB), deadline.wait_seconds())
        return bytes(received)

    def _how_it_ended(self) -> str:
        self._data.close()
        self._own_time.close()
        code = self._exit_code(GRACE)
        if code is None:
            return "The attempt's process ended in the middle of a call."
        if code < 0:
            name = (
                signal.Signals(-code).name if -code in list(signal.Signals) else f"signal {-code}"
            )
            return f"The attempt's process was ended by {name}{_SIGNAL_REASONS.get(name, '')}."
        if code >> 28 == _WINDOWS_ERROR:
            return (
                "The attempt's process was ended by Windows, with "
                f"0x{code:08X}{_WINDOWS_REASONS.get(code, '')}."
            )
        return f"The attempt ended its own process (exit status {code}) in place of answering."


class Box(Protocol):
    """Starts a fresh process for each attempt, one at a time."""

    level: Level

    def attempt(self, limits: Limits) -> Connection:
        """Return a connection to a new process that has run no student code."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None: ...
