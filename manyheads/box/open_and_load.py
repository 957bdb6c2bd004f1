"""Open a box of an isolation level, and load an attempt's source into a process of it.

One message runs all parts of a source. If no reply arrives, another process runs the parts again,
with one message for each. The part that ends that process is known by its number, and the next
process leaves it out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from .connection import AttemptEnded, Box, Connection, End, Spent
from .level import Level
from .replies import within_file
from .worker.limits import CUDA, Limits
from .worker.messages import Load, Part, Raised, Reply


def open_box(level: Level, limits: Limits, hidden: Path) -> Box:
    """Open a box of this level.

    `hidden`: the course's folder, which is not visible inside. Raises BoxUnavailable.
    """
    if level is Level.NAMESPACES and limits.device == CUDA:
        from .namespaces import GpuBox

        return GpuBox(limits, hidden)
    if level is Level.NAMESPACES:
        from .namespaces import NamespaceBox

        return NamespaceBox(limits, hidden)
    if level is Level.USER:
        from .without_namespaces import UserBox

        return UserBox()
    from .without_namespaces import ProcessBox

    return ProcessBox()


MOST_SKIPPED = 8  # parts of one file that may end a process
# each such part divides the time of the next one by this, so that all together take twice the
# first's
SHORTER = 2
SHORTEST = 0.5  # seconds for a part, below which a busy machine would decide


@dataclass(frozen=True)
class Stopped:
    """A part that did not run to its end: the line at which it begins, and why.

    ended: it ended the process, in this way.
    """

    line: int
    raised: Raised | None = None
    ended: End | None = None
    seconds: float = 0.0  # that it was given


@dataclass(frozen=True)
class Loaded:
    """A process that has loaded a source.

    raised: what its text raised that cannot be parsed. skipped: see Load.
    """

    connection: Connection
    raised: Raised | None = None
    stopped: tuple[Stopped, ...] = ()
    skipped: tuple[int, ...] = ()


def load(
    box: Box,
    limits: Limits,
    message: Load,
    connection: Connection | None = None,
    spent: Spent | None = None,
) -> Loaded:
    """Load a source into a process.

    Raises AttemptEnded where that cannot be done without the parts that end it.

    All parts together may take the time of a call, and all processes together an attempt's.

    Args:
        box: starts the processes.
        limits: of each process.
        message: what to load, and the parts that are known to end a process.
        connection: to the first process; None: it is started.
        spent: by earlier processes of the attempt; what these spend is added.
    """
    connection = connection or box.attempt(limits)
    connection.spent = spent = spent or connection.spent
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
    """Return a connection to another process of the attempt, which pays for its start: on a GPU
    that takes seconds.
    """
    started = time.monotonic()
    connection = box.attempt(limits)
    spent.seconds += time.monotonic() - started
    connection.spent = spent
    return connection


def _load_stepwise(box: Box, limits: Limits, message: Load, spent: Spent, lines: int) -> Loaded:
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
