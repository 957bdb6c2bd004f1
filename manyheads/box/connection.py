"""The judge's end of one attempt's connection: every read has a deadline, and every length a cap.

A deadline counts only the time in which the attempt ran or slept. Time in which it waited for a
processor does not count, so a busy machine costs no points. A second deadline counts wall-clock
time, and is ten times as long.

`load` loads an attempt's source into a process. One message runs all parts of a source. If no reply
arrives, another process runs the parts again, with one message for each. If a part ends that
process, the next process leaves this part out.
"""

from __future__ import annotations

import io
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self, TypeVar

from .host_processes import seconds_run
from .level_and_device_names import Level
from .replies import BadReply, read_reply, split, within_file
from .worker import wire
from .worker.limits import MIB, Limits
from .worker.messages import Batch, Load, Message, Part, Raised, Reply, Traced, tensors_of

Answer = TypeVar("Answer")

WALL = 10  # the limit on wall-clock time, as a multiple of the limit on the attempt's own time
# All replies of an attempt together may be at most this many times as large as a single one. The
# judge keeps them for the diagnosis: without this limit, one student's replies of 30 MiB each took
# the judge to 5 GiB and 85 s. The size is counted in float64, because the judge converts replies to
# it: 30 MiB of bools become 240 MiB, and several copies of that took the judge to 1.1 GiB.
ALL_REPLIES = 4
WIDE = 8  # bytes of a number in float64
GRACE = 2.0  # seconds for the kernel to end an attempt and report its exit status
_SOON = 0.01  # seconds to wait, at least, before the attempt's own time is read again
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
        """Wait up to `seconds` until bytes can be sent, send some, and return their number.

        Returns 0 if none could be sent. Raises OSError.
        """
        if not _is_ready(self._sends, seconds, to_write=True):
            return 0
        return self._sends.write(data) or 0

    def receive(self, count: int, seconds: float) -> bytes:
        """Return at most `count` bytes, or no bytes if none arrive within `seconds`.

        Raises OSError, also if the other side has closed the connection.
        """
        if not _is_ready(self._receives, seconds, to_write=False):
            return b""
        data = self._receives.read(count)
        if data == b"":
            raise ConnectionResetError
        return data or b""

    def close(self) -> None:
        """Close the files."""
        self._receives.close()
        self._sends.close()


def _is_ready(file: io.RawIOBase, seconds: float, *, to_write: bool) -> bool:
    """Wait up to `seconds` until a file is ready, and return whether it became ready.

    With `to_write`, a file is ready if it can be written to, and otherwise if it can be read. It is
    also ready if its other side is closed.
    """
    if not hasattr(select, "poll"):  # on Windows
        readers, writers = ([], [file]) if to_write else ([file], [])
        return any(select.select(readers, writers, [], seconds))
    poll = select.poll()
    poll.register(file, select.POLLOUT if to_write else select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class OwnTime:
    """Measures how long an attempt ran or slept while the judge waits for one answer.

    The kernel counts how long the main thread waited for a processor (schedstat). This time is
    subtracted from the time that has passed. The attempt's other threads and its children can keep
    its main thread waiting, so the result is at least the time in which they ran (stat).
    """

    def __init__(self, files: Sequence[int] = ()) -> None:
        """Begin to count.

        Args:
            files: the open files schedstat and stat of the attempt, which `close` closes; empty if
                this system has no such files.
        """
        self._files = files
        self._before = (0.0, 0.0)  # seconds waited and run until the previous answer arrived
        self.begin()

    def begin(self) -> None:
        """Begin to count anew, for the next answer."""
        self._before = self._waited_and_ran()

    def own_seconds(self, seconds: float) -> float:
        """Return how many of the `seconds` since `begin` the attempt ran or slept.

        All of the seconds count if there are no files, or if the process has ended.
        """
        waited, busy = (
            total - earlier
            for total, earlier in zip(self._waited_and_ran(), self._before, strict=True)
        )
        return min(seconds, max(seconds - waited, busy))

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            os.close(file)
        self._files = ()

    def _waited_and_ran(self) -> tuple[float, float]:
        try:
            schedstat, stat = (os.pread(file, 1000, 0) for file in self._files)
            return int(schedstat.split()[1]) / 1e9, seconds_run(stat.decode(errors="replace"))
        except (OSError, ValueError, IndexError):  # the process has ended, or there are no files
            return self._before


class _Deadline:
    """The limits on the time of one answer: own seconds, and `WALL` times as many by the clock."""

    def __init__(self, own_time: OwnTime, seconds: float) -> None:
        self._own_time = own_time
        self._seconds = seconds
        self._started = time.monotonic()

    @property
    def seconds_passed(self) -> float:
        """The seconds by the clock since the deadline was set."""
        return time.monotonic() - self._started

    def wait_seconds(self) -> float:
        """Return for how many seconds to wait before this method is called again.

        Raises TimeoutError if a limit is reached. Its message names the limit.
        """
        seconds, passed = self._seconds, self.seconds_passed
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
    """The resources that all processes of one attempt have used so far."""

    seconds: float = 0.0  # in which they ran or slept
    received: int = 0  # bytes of replies, as float64


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
        """Connect to a process.

        Args:
            data: the pipes or the socket to the process.
            limits: of the attempt.
            exit_code: waits up to so many seconds for the process to end, and kills it if it still
                runs. Returns the exit code in the convention of Popen, or None if it is unknown.
            time_files: see OwnTime.
        """
        self._data, self._limits, self._exit_code = data, limits, exit_code
        self._own_time = OwnTime(time_files)
        self.spent = Spent()

    def ask(self, message: Message, seconds: float) -> Reply:
        """Send a message, and return the reply.

        Raises AttemptEnded if the process ends, if the reply is bad, or if it does not arrive
        within `seconds` of the attempt's own time.
        """
        return self.ask_for(read_reply, message, seconds)

    def ask_all(
        self, packed: Sequence[bytes], read: Callable[[bytes], Answer], seconds: float
    ) -> list[Answer]:
        """Send messages together, and return the answer to each.

        Raises AttemptEnded; then there is no answer to any of the messages.

        Args:
            packed: the messages, each as `wire.encode` returns it.
            read: converts the bytes of one answer, and may raise BadReply.
            seconds: the attempt's own time for all messages together.
        """
        data = b"".join([wire.encode(Batch(len(packed))), *packed])
        return self._exchange(
            lambda payload: [read(reply) for reply in split(payload, len(packed))], data, seconds
        )

    def ask_for(self, read: Callable[[bytes], Answer], message: Message, seconds: float) -> Answer:
        """Send a message, and return the answer, converted by `read`.

        Raises AttemptEnded, also if `read` raises BadReply.
        """
        return self._exchange(read, wire.encode(message), seconds)

    def close(self) -> None:
        """End the attempt's process and all processes that it started; wait up to GRACE seconds."""
        self._data.close()
        self._own_time.close()
        self._exit_code(GRACE)

    def _exchange(self, read: Callable[[bytes], Answer], data: bytes, seconds: float) -> Answer:
        """Send the data, and return the answer, converted by `read`.

        Raises AttemptEnded. Before that, the connection is closed and the process ended.
        """
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
        """Send the data, and return the bytes of the answer.

        In any case, the attempt's own time until then is added to `spent`.

        Raises:
            BadReply: bytes arrive before the data is sent, or the answer is too long.
            TimeoutError: the answer is not complete within the time.
            OSError: the process has closed the connection.
        """
        deadline = _Deadline(self._own_time, seconds)
        view = memoryview(data)
        limit_mib = self._limits.reply_mib
        try:
            if self._data.receive(1, 0.0):
                raise BadReply("it answered before it was asked")
            while view:
                view = view[self._data.send(view, deadline.wait_seconds()) :]
            (length,) = wire.LENGTH.unpack(self._receive(wire.LENGTH.size, deadline))
            if length > limit_mib * MIB:
                raise BadReply(f"its answer is larger than {limit_mib} MiB")
            self._count_received(length)
            return self._receive(length, deadline)
        finally:
            self.spent.seconds += self._own_time.own_seconds(deadline.seconds_passed)
            self._own_time.begin()

    def _count_widened(self, answer: object) -> None:
        """Count the additional bytes that an answer's tensors need once they are float64.

        Raises BadReply if the tensors of one reply, or all replies together, are too large then.
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
        """Add bytes of replies to `spent`.

        Raises BadReply if all replies of the attempt together are larger than ALL_REPLIES times
        the limit on one.
        """
        limit_mib = ALL_REPLIES * self._limits.reply_mib
        self.spent.received += length
        if self.spent.received > limit_mib * MIB:
            raise BadReply(f"all its answers together are larger than {limit_mib} MiB")

    def _receive(self, count: int, deadline: _Deadline) -> bytes:
        received = bytearray()
        while len(received) < count:
            received += self._data.receive(min(count - len(received), MIB), deadline.wait_seconds())
        return bytes(received)

    def _how_it_ended(self) -> str:
        """Close the connection, end the process, and return a sentence about how it ended."""
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
    """Starts a fresh process for each attempt."""

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


MOST_SKIPPED = 8  # parts of one file that may end a process
# Each part that ended a process divides the time of the following parts by this. So, apart from
# the SHORTEST time, all parts that run to their deadline take at most twice the time of the first.
SHORTER = 2
SHORTEST = 0.5  # seconds for a part; with less, the load of the machine would decide


@dataclass(frozen=True)
class Stopped:
    """A part that did not run to its end."""

    line: int  # at which the part begins
    raised: Raised | None = None  # the exception, if the part raised one
    ended: End | None = None  # how the process ended, if the part ended it
    seconds: float = 0.0  # the time that the part was given


@dataclass(frozen=True)
class Loaded:
    """A process that has loaded a source."""

    connection: Connection
    raised: Raised | None = None  # the SyntaxError, if the text cannot be parsed
    stopped: tuple[Stopped, ...] = ()
    skipped: tuple[int, ...] = ()  # see Load


def load(
    box: Box,
    limits: Limits,
    message: Load,
    connection: Connection | None = None,
    spent: Spent | None = None,
) -> Loaded:
    """Load a source into a process, and leave out the parts that end a process.

    1. One message runs all parts, within the time of one call.
    2. If this process ends, another one runs the parts one by one. Each part has half the time of a
       call.
    3. If a part ends a process, the next process leaves the part out. A part then has half as much
       time as in the process before, but at least SHORTEST seconds.

    All processes together have the time of one attempt.

    If the text cannot be parsed, the SyntaxError is in the result.

    Args:
        box: starts the processes.
        limits: of each process.
        message: the source, and the parts that are known to end a process.
        connection: to the first process; if None, a process is started.
        spent: the resources that earlier processes of the attempt used. Those of the processes
            started here are added.

    Raises:
        AttemptEnded: a reply is bad, more than MOST_SKIPPED parts end a process, the attempt has no
            time left, or a process ends before it has listed its parts.
    """
    connection = connection or box.attempt(limits)
    spent = spent or connection.spent
    connection.spent = spent
    lines = message.source.count("\n") + 1
    try:
        seconds = min(limits.seconds_per_call, limits.seconds_per_attempt - spent.seconds)
        reply = _ask(connection, message, seconds, lines)
    except AttemptEnded as ended:
        if ended.end is End.BAD_REPLY:
            raise
        return _load_stepwise(box, limits, message, spent, lines)
    return Loaded(connection, reply.raised, _stopped_parts(reply), message.skipped)


def start_again(box: Box, limits: Limits, spent: Spent) -> Connection:
    """Start another process of the attempt, and return a connection to it.

    The start counts as time of the attempt, in `spent`. On a GPU it takes seconds.
    """
    started = time.monotonic()
    connection = box.attempt(limits)
    spent.seconds += time.monotonic() - started
    connection.spent = spent
    return connection


def _load_stepwise(box: Box, limits: Limits, message: Load, spent: Spent, lines: int) -> Loaded:
    """Load a source as `load` does after its first process has ended."""
    skipped: dict[int, Stopped | None] = dict.fromkeys(message.skipped)
    while True:
        message = replace(message, stepwise=True, skipped=tuple(skipped))
        connection = start_again(box, limits, spent)
        begins = _ask(connection, message, limits.seconds_per_call, lines).parts
        stopped: list[Stopped] = []
        for number in (number for number in range(len(begins)) if number not in skipped):
            shorter = limits.seconds_per_call / SHORTER ** (1 + len(skipped))
            seconds = min(max(SHORTEST, shorter), limits.seconds_per_attempt - spent.seconds)
            try:
                stopped += _stopped_parts(_ask(connection, Part(number), seconds, lines))
            except AttemptEnded as ended:
                if ended.end is End.BAD_REPLY or seconds <= 0 or len(skipped) >= MOST_SKIPPED:
                    raise
                skipped[number] = Stopped(begins[number], ended=ended.end, seconds=seconds)
                break
        else:
            stopped += filter(None, skipped.values())
            return Loaded(
                connection, None, tuple(sorted(stopped, key=lambda s: s.line)), tuple(skipped)
            )


def _ask(connection: Connection, message: Load | Part, seconds: float, lines: int) -> Reply:
    return within_file(connection.ask(message, max(0.0, seconds)), lines)


def _stopped_parts(reply: Reply) -> tuple[Stopped, ...]:
    return tuple(Stopped(raised.part or 1, raised) for raised in reply.stopped)
