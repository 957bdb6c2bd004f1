"""Open a box of an isolation level, and load an attempt's source into one of its processes.

One message runs all parts of a source. If no reply arrives, another process runs the parts again,
with one message for each. If a part ends that process, the next process leaves this part out.
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
    """Open a box of this level. Raises BoxUnavailable.

    Args:
        level: the level.
        limits: of each attempt.
        hidden: the course's folder, which is not visible inside.
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
# Each part that ended a process divides the time of the following parts by this. So all these
# parts together take at most twice the time of the first.
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
    """Load a source into a process.

    Parts that end a process are left out. Raises AttemptEnded if the source cannot be loaded in
    this way. All parts together may take the time of one call, and all processes together the time
    of one attempt.

    Args:
        box: starts the processes.
        limits: of each process.
        message: the source, and the parts that are known to end a process.
        connection: to the first process; if None, a process is started.
        spent: the resources that earlier processes of the attempt used. Those of the processes
            started here are added.
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
    """Return a connection to another process of the attempt.

    The start counts as time of the attempt. On a GPU it takes seconds.
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
