"""Prove the line at which an attempt goes wrong. Every check passes after one edit of that line.

Edited attempts run in the box. A quick look tries many edits in one process, one after the other,
which takes a tenth of the time. Then each promising edit is proved in a process that has run
nothing else, as any attempt is. If one text leaves data for the next in the first process, it can
only waste the look.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from ..box.connection import AttemptEnded, Connection, End, Spent
from ..box.replies import read_reply
from ..box.worker import wire
from ..box.worker.messages import Call, Reply
from ..checks.explain import is_left_open, says_unwritten
from ..checks.hidden_check import CheckOutcome
from ..checks.runner import target_of
from ..lines.search import Bounds, OutOfTime, candidates, find_lines
from ..lines.single_edits import LineEdit
from ..result import CheckResult
from .attempt_runner import AttemptRunner

ASKED = 8  # the most wrong calls that are repeated with an edited attempt at a look
# the outcomes of checks with which a search makes sense
_SEARCHED = ("passed", "failed", "error", "skipped")
IsRight = Callable[[Reply], bool]


@dataclass
class EditedAttempts:
    """Edits of an attempt that failed. Their process is kept between looks.

    Attributes:
        attempt: The attempt.
        outcomes: The outcomes of the checks.
        is_right: Returns for a call a function that tells whether a reply is right, or None if a
            reply to the call shows nothing alone.
        do_pass: Returns whether an attempt passes these checks, or all checks if none are given.
            Raises OutOfTime and AttemptEnded.
    """

    attempt: AttemptRunner
    outcomes: Sequence[CheckOutcome | CheckResult]
    is_right: Callable[[Call], IsRight | None]
    do_pass: Callable[[AttemptRunner, Sequence[str]], bool]
    _connection: Connection | None = None

    @cached_property
    def _failed(self) -> list[str]:
        return [o.id for o in self.outcomes if o.outcome not in ("passed", "skipped")]

    def mended(self, bounds: Bounds) -> tuple[LineEdit, ...]:
        """Return an edit for each line at which one edit makes every check pass.

        Returns () if there are no such lines, or too many.
        """
        source, transcript = self.attempt.source, self.attempt.transcript
        raised = [e.reply.raised for e in transcript]
        is_unfinished = any(
            says_unwritten(exception) or is_left_open(exception) for exception in raised
        )
        is_over = any(o.outcome not in _SEARCHED for o in self.outcomes)
        # In these cases one edit is not enough.
        if not self._failed or is_over or is_unfinished or source.is_unwritten:
            return ()
        exchanges = [e for e in transcript if e.check in self._failed]
        packed = [(e, self.attempt.memory.pack(e.call, self.attempt.dtype)) for e in exchanges]
        # Small calls are asked first, and those that ask for gradients last.
        packed.sort(key=lambda pair: (pair[0].call.cotangent is not None, len(pair[1])))
        judged = ((e, data, self.is_right(e.call)) for e, data in packed)
        wrong_calls = (
            (data, is_right)
            for e, data, is_right in judged
            if is_right is not None and not is_right(e.reply)
        )
        self._wrong = list(islice(wrong_calls, ASKED))
        self._deadline = time.monotonic() + bounds.seconds
        raised_on = {
            e.reply.raised.line
            for e in exchanges
            if e.reply.raised is not None and e.reply.raised.line
        }
        edits = candidates(source, {target_of(e.call) for e in exchanges}, raised_on)
        if source.cells:  # the lines at which cells begin must stay
            edits = [e for e in edits if e.after.count("\n") == e.before.count("\n")]
        try:
            return find_lines(edits, self._look, self._passes, bounds)
        except (OutOfTime, AttemptEnded):  # raised if an edited attempt does not return
            return ()
        finally:
            if self._connection is not None:
                self._connection.close()

    def _look(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it answers the wrong calls of the attempt rightly.

        If the attempt has no such calls, return whether the text passes the failed checks.
        """
        if not self._wrong:
            return [self._passes(text, self._failed) for text in texts]
        first_results = self._answer(texts, self._wrong[:1])
        return [
            ok and all(self._answer([text], self._wrong))
            for ok, text in zip(first_results, texts, strict=True)
        ]

    def _answer(self, texts: Sequence[str], calls: Sequence[tuple[bytes, IsRight]]) -> list[bool]:
        """Return for each text whether it answers these calls rightly.

        The calls to all texts are sent together. If that fails, they are sent text by text.
        """
        packed_calls, source = [packed for packed, _ in calls], self.attempt.source
        packed = [
            message
            for text in texts
            for message in (wire.encode(replace(source, text=text).load()), *packed_calls)
        ]
        seconds_left = self._seconds_left()
        try:
            connection = self._connection or self.attempt.box.attempt(self.attempt.limits)
            self._connection = None
            replies = iter(connection.ask_all(packed, read_reply, seconds_left))
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise
            return [len(texts) > 1 and all(self._answer([text], calls)) for text in texts]
        self._connection, connection.spent = connection, Spent()
        answers = []
        for _ in texts:
            loaded, call_replies = next(replies), [next(replies) for _ in calls]
            verdicts = (
                is_right(reply) for (_, is_right), reply in zip(calls, call_replies, strict=True)
            )
            answers.append(loaded.raised is None and all(verdicts))
        return answers

    def _passes(self, text: str, look_at: Sequence[str] = ()) -> bool:
        """Return whether the text passes every check, in a new process.

        If `look_at` has ids, only these checks are run, in the process of the looks.
        """
        seconds_left, original = self._seconds_left(), self.attempt
        per_call = min(seconds_left, original.limits.seconds_per_call)
        per_attempt = min(seconds_left, original.limits.seconds_per_attempt)
        short = replace(original.limits, seconds_per_call=per_call, seconds_per_attempt=per_attempt)
        source = replace(original.source, text=text)
        attempt = AttemptRunner(
            original.box, source, short, dtype=original.dtype, memory=original.memory
        )
        try:
            connection = (
                self._connection or original.box.attempt(original.limits) if look_at else None
            )
            raised = attempt.load_into(connection) if connection else attempt.load()
            return raised is None and self.do_pass(attempt, look_at)
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise
            return False
        finally:
            if look_at:
                self._connection = attempt.release()
            attempt.close()

    def _seconds_left(self) -> float:
        if (seconds_left := self._deadline - time.monotonic()) <= 0:
            raise OutOfTime
        return seconds_left
