"""Edited attempts in the box: a look at many of them in one process, and a proof of each in a process of its own.

In the first process the texts are loaded one after the other, which takes a tenth of the time. Whatever is carried there from
one to the next can only waste the look: what is told is proved in a process that has run nothing else, as any attempt is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from ..box.connection import AttemptEnded, Connection, End
from ..box.level import Box
from ..box.replies import read_reply
from ..box.worker import wire
from ..box.worker.answers import Reply
from ..box.worker.limits import Limits
from ..diagnosis.edit_candidates import candidates
from ..diagnosis.edit_search import Bounds, OutOfTime, find_lines
from ..diagnosis.edit_text import Edit
from ..submission import AttemptSource
from .attempt_runner import AttemptRunner

ASKED = 8  # of the calls that went wrong, the most that an edited attempt is asked at a look


@dataclass(frozen=True)
class Asked:
    """A call that went wrong, as it is sent, and whether a reply to it is right."""

    packed: bytes
    is_right: Callable[[Reply], bool]


@dataclass(frozen=True)
class Questions:
    """What edited attempts are asked. The last two raise OutOfTime and AttemptEnded.

    wrong: calls that the attempt answered wrongly, small ones first; empty where no single call shows what is wrong.
    mends: whether the checks pass that failed. is_done: whether every check passes.
    """

    wrong: Sequence[Asked]
    mends: Callable[[AttemptRunner], bool]
    is_done: Callable[[AttemptRunner], bool]


def mending_edits(
    box: Box,
    source: AttemptSource,
    runner: Callable[[AttemptSource, Limits], AttemptRunner],
    limits: Limits,
    questions: Questions,
    targets: Collection[str],
    raised_on: Collection[int],
    bounds: Bounds,
) -> tuple[Edit, ...]:
    """Return an edit for each line where one makes every check pass; empty where there are none, or too many.

    Args:
        box: where edited attempts run.
        source: the attempt.
        runner: makes the runner of an edited attempt.
        limits: of an edited attempt.
        questions: what is asked of one.
        targets: the functions and classes whose calls went wrong.
        raised_on: the lines of exceptions.
        bounds: of the search.
    """
    edited = EditedAttempts(box, source, runner, limits, questions, bounds.seconds)
    edits = candidates(source.source, targets, raised_on)
    if source.cells:  # the lines at which cells begin must stay
        edits = [e for e in edits if e.after.count("\n") == e.before.count("\n")]
    try:
        return find_lines(edits, edited, bounds)
    finally:
        edited.close()


class EditedAttempts:
    """Edited attempts of one failure. Between looks, their process stays."""

    def __init__(
        self,
        box: Box,
        source: AttemptSource,
        runner: Callable[[AttemptSource, Limits], AttemptRunner],
        limits: Limits,
        questions: Questions,
        seconds: float,
    ) -> None:
        self._box, self._source, self._runner, self._limits = box, source, runner, limits
        self._questions = replace(questions, wrong=questions.wrong[:ASKED])
        self._deadline = time.monotonic() + seconds
        self._connection: Connection | None = None

    def look(self, texts: Sequence[str]) -> list[bool]:
        """Return whether each answers what the attempt answered wrongly: the smallest such call, then others.

        Without such calls, whether the checks pass that failed.
        """
        wrong = self._questions.wrong
        if not wrong:
            return [self._ended_well(self._mends, text) for text in texts]
        first = self._answer(texts, wrong[:1])
        return [
            ok and self._ended_well(lambda one: all(self._answer_together([one], wrong)), text)
            for ok, text in zip(first, texts, strict=True)
        ]

    def passes(self, text: str) -> bool:
        """Return whether every check passes, in a process of its own."""
        return self._ended_well(self._is_done, text)

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ended_well(self, holds: Callable[[str], bool], text: str) -> bool:
        """Return whether this holds of the text; not where its process ended. Raises OutOfTime."""
        try:
            return holds(text)
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise OutOfTime from None
            return False

    def _answer(self, texts: Sequence[str], calls: Sequence[Asked]) -> list[bool]:
        """Return whether each text answers these calls rightly. Asked together; one by one if that goes wrong."""
        try:
            return self._answer_together(texts, calls)
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise OutOfTime from None
            return [self._ended_well(lambda one: all(self._answer_together([one], calls)), text) for text in texts]

    def _answer_together(self, texts: Sequence[str], calls: Sequence[Asked]) -> list[bool]:
        asked = [call.packed for call in calls]
        packed = [other for text in texts for other in (wire.encode(replace(self._source, source=text).load()), *asked)]
        connection = self._take_connection()
        replies = iter(connection.ask_all(packed, read_reply, self._left()))
        self._connection, connection.received = connection, 0
        found = []
        for _ in texts:
            loaded, mine = next(replies), [next(replies) for _ in calls]
            right = (call.is_right(reply) for call, reply in zip(calls, mine, strict=True))
            found.append(loaded.raised is None and all(right))
        return found

    def _mends(self, text: str) -> bool:
        attempt = self._edited(text)
        try:
            return attempt.load_into(self._take_connection()) is None and self._questions.mends(attempt)
        finally:
            self._connection = attempt.release()

    def _is_done(self, text: str) -> bool:
        attempt = self._edited(text)
        try:
            return attempt.load() is None and self._questions.is_done(attempt)
        finally:
            attempt.close()

    def _take_connection(self) -> Connection:
        self._left()
        connection, self._connection = self._connection, None
        return connection or self._box.attempt(self._limits)

    def _edited(self, text: str) -> AttemptRunner:
        left, limits = self._left(), self._limits
        per_call, whole = min(left, limits.seconds_per_call), min(left, limits.seconds_per_attempt)
        short = replace(limits, seconds_per_call=per_call, seconds_per_attempt=whole)
        return self._runner(replace(self._source, source=text), short)

    def _left(self) -> float:
        """Return the seconds that are left. Raises OutOfTime."""
        if (left := self._deadline - time.monotonic()) <= 0:
            raise OutOfTime
        return left
