"""Load a student's attempt into a box, and send it the messages of a command, one after the other.

A failure of the attempt becomes one sentence for the student, with the moment at which it happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..box.connection import AttemptEnded, Box, load
from ..box.worker.limits import Limits
from ..box.worker.messages import Blocks, Call, Raised, Reply, Training
from ..checks.explain_exceptions import explain, is_undefined, sanitize
from ..files import CourseFault
from ..submission import Source

SECONDS = 3600.0  # for all messages together; each message has the course's limit for a call


class AttemptStopped(CourseFault):
    """The command cannot go on with the attempt.

    The text is the reason, for the student, and the command to run next.
    """

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}\nNext: course check")


@dataclass(frozen=True)
class LoadedAttempt:
    """An attempt whose file was imported in a process of the box.

    Attributes:
        ask: Sends a message to the attempt and returns the reply. May raise AttemptEnded.
        undefined: The error message if the attempt uses a name that a failed statement of its file
            should have defined, or "" if no statement failed.
    """

    ask: Callable[[Any], Reply]
    undefined: str = ""

    def reply_to(self, message: Call | Training | Blocks, at: str) -> Reply:
        """Send a message and return the reply, in which the attempt raised no exception.

        Raises AttemptStopped if it raised one, or if its process ended.

        Args:
            message: The message.
            at: The moment at which the message is sent, for the error message.
        """
        with _noted_at(at):
            reply = self.ask(message)
        if reply.raised is not None:
            why = is_undefined(reply.raised) and self.undefined
            raise AttemptStopped(why or exception_sentence(reply.raised, at))
        return reply


@contextmanager
def _noted_at(at: str) -> Iterator[None]:
    """Raise AttemptStopped, with this moment in its text, in place of AttemptEnded."""
    try:
        yield
    except AttemptEnded as ended:
        raise AttemptStopped(f"{ended} That was {at}.") from None


@contextmanager
def own_loaded_attempt(box: Box, limits: Limits, source: Source) -> Iterator[LoadedAttempt]:
    """Load an attempt in a process of the box, which ends with the context.

    Args:
        box: The box.
        limits: The limits. `seconds_per_call` holds for each message; all messages together may
            take SECONDS.
        source: The attempt.

    Raises:
        AttemptStopped: The attempt cannot be imported.
    """
    imported = f"while {sanitize(source.name)} was imported"
    with _noted_at(imported):
        loaded = load(box, replace(limits, seconds_per_attempt=SECONDS), source.load())
    try:
        if loaded.raised is not None:
            raise AttemptStopped(exception_sentence(loaded.raised, imported))
        undefined = next(
            (
                exception_sentence(stopped.raised, imported)
                for stopped in loaded.stopped
                if stopped.raised
            ),
            "",
        )
        yield LoadedAttempt(
            lambda message: loaded.connection.ask(message, limits.seconds_per_call), undefined
        )
    finally:
        loaded.connection.close()


def exception_sentence(raised: Raised, at: str) -> str:
    """Return a sentence about an exception of the attempt at this moment."""
    message = sanitize(raised.message)
    return f"Your code {explain(raised)}, {at}." + (f" Python says: {message}" if message else "")
