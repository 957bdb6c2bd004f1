"""Prove the line at which an attempt goes wrong: one edit of it, after which every check passes.

Edited attempts run in the box: a look at many of them in one process, and a proof of each in a process of its own. In the first
process the texts are loaded one after the other, which takes a tenth of the time. Whatever is carried there from one to the
next can only waste the look: what is told is proved in a process that has run nothing else, as any attempt is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from torch import Tensor

from ..box.connection import AttemptEnded, Connection, End
from ..box.level import Box
from ..box.replies import read_reply
from ..box.worker import wire
from ..box.worker.answers import Reply
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call
from ..checks.explain import is_left_open, says_unwritten
from ..checks.outcome import CheckOutcome
from ..checks.transcript import Exchange, target_of
from ..diagnosis.agree import agree, is_comparable
from ..diagnosis.edit_candidates import candidates
from ..diagnosis.edit_search import Bounds, OutOfTime, find_lines
from ..diagnosis.edit_text import Edit
from ..result import CheckResult, ProvedLine
from ..submission import AttemptSource, proved_line
from ..submission.unwritten import is_unwritten
from .attempt_runner import AttemptRunner
from .memory import Memory, RememberingRunner

GRADED = Bounds(seconds=2.0)
RunChecks = Callable[[AttemptRunner, Sequence[str]], list[CheckOutcome]]  # of all checks, or of those with these ids
_SEARCHED = ("passed", "failed", "error", "skipped")  # how checks end where it makes sense to search
ASKED = 8  # of the calls that went wrong, the most that an edited attempt is asked at a look


@dataclass(frozen=True)
class Failure:
    """What is known of an attempt that failed: its text, how its checks ended, what it was asked, in which dtype."""

    source: AttemptSource
    outcomes: Sequence[CheckOutcome | CheckResult]
    transcript: Sequence[Exchange]
    dtype: str

    @property
    def failed(self) -> list[str]:
        """The ids of the checks that did not pass."""
        return [o.id for o in self.outcomes if o.outcome not in ("passed", "skipped")]

    @property
    def asked(self) -> list[Exchange]:
        """What those checks asked."""
        failed = set(self.failed)
        return [e for e in self.transcript if e.check in failed]

    @property
    def can_be_mended(self) -> bool:
        """Whether one edit may be enough: nothing is unwritten, and nothing ended before its time."""
        raised = [e.reply.raised for e in self.transcript]
        is_unfinished = any(says_unwritten(exception) or is_left_open(exception) for exception in raised)
        is_over = any(o.outcome not in _SEARCHED for o in self.outcomes)
        return bool(self.failed) and not (is_over or is_unfinished or is_unwritten(self.source.source))


IsRight = Callable[[Reply], bool]


@dataclass(frozen=True)
class Questions:
    """What edited attempts are asked.

    is_right: of a call whether a reply to it is right; None for one that shows nothing by itself. passes: whether these
    checks pass, all of them where none are given. It raises OutOfTime and AttemptEnded.
    """

    is_right: Callable[[Call], IsRight | None]
    passes: Callable[[AttemptRunner, Sequence[str]], bool]


def mending_edits(
    box: Box, limits: Limits, failure: Failure, questions: Questions, bounds: Bounds, memory: Memory | None = None
) -> tuple[Edit, ...]:
    """Return an edit for each line where one makes every check pass; empty where there are none, or too many.

    limits: of an edited attempt. memory: of earlier attempts.
    """
    if not failure.can_be_mended:
        return ()
    asked = failure.asked
    edited = EditedAttempts(box, limits, failure, questions, bounds.seconds, memory)
    raised_on = {e.reply.raised.line for e in asked if e.reply.raised is not None and e.reply.raised.line}
    edits = candidates(failure.source.source, {target_of(e.call) for e in asked}, raised_on)
    if failure.source.cells:  # the lines at which cells begin must stay
        edits = [e for e in edits if e.after.count("\n") == e.before.count("\n")]
    try:
        return find_lines(edits, edited, bounds)
    finally:
        edited.close()


def _size_of(call: Call) -> tuple[bool, int]:
    """By which small calls come first, and those that ask for gradients last."""
    builds = [v for v in call.given if isinstance(v, Build)]
    values = [*call.given, *(t for b in builds for t in (b.state or {}).values())]
    return call.cotangent is not None, sum(v.numel() for v in values if isinstance(v, Tensor))


class EditedAttempts:
    """Edited attempts of one failure. Between looks, their process stays."""

    def __init__(
        self, box: Box, limits: Limits, failure: Failure, questions: Questions, seconds: float, memory: Memory | None
    ) -> None:
        self._box, self._limits, self._failure, self._questions = box, limits, failure, questions
        self._memory = memory
        self._connection: Connection | None = None
        self._wrong = list(islice(self._answered_wrongly(), ASKED))
        self._deadline = time.monotonic() + seconds

    def _answered_wrongly(self) -> Iterator[tuple[bytes, IsRight]]:
        """Yield calls that the attempt answered wrongly, as they are sent, and whether a reply is right; small ones first."""
        memory = self._memory or Memory()
        for each in sorted(self._failure.asked, key=lambda e: _size_of(e.call)):
            is_right = self._questions.is_right(each.call)
            if is_right is not None and not is_right(each.reply):
                yield memory.pack(each.call, self._failure.dtype), is_right

    def look(self, texts: Sequence[str]) -> list[bool]:
        """Return whether each answers what the attempt answered wrongly: the smallest such call, then others.

        Without such calls, whether the checks pass that failed.
        """
        if not self._wrong:
            return [self._ended_well(self._mends, text) for text in texts]
        first = self._answer(texts, self._wrong[:1])
        return [
            ok and self._ended_well(lambda one: all(self._answer_together([one], self._wrong)), text)
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

    def _answer(self, texts: Sequence[str], calls: Sequence[tuple[bytes, IsRight]]) -> list[bool]:
        """Return whether each text answers these calls rightly. Asked together; one by one if that goes wrong."""
        try:
            return self._answer_together(texts, calls)
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise OutOfTime from None
            return [self._ended_well(lambda one: all(self._answer_together([one], calls)), text) for text in texts]

    def _answer_together(self, texts: Sequence[str], calls: Sequence[tuple[bytes, IsRight]]) -> list[bool]:
        asked, source = [packed for packed, _ in calls], self._failure.source
        packed = [each for text in texts for each in (wire.encode(replace(source, source=text).load()), *asked)]
        connection = self._take_connection()
        replies = iter(connection.ask_all(packed, read_reply, self._left()))
        self._connection, connection.received = connection, 0
        found = []
        for _ in texts:
            loaded, mine = next(replies), [next(replies) for _ in calls]
            right = (is_right(reply) for (_, is_right), reply in zip(calls, mine, strict=True))
            found.append(loaded.raised is None and all(right))
        return found

    def _mends(self, text: str) -> bool:
        attempt = self._edited(text)
        try:
            failed = self._failure.failed
            mends = (self._questions.passes(attempt, ids) for ids in (failed[:1], failed[1:]) if ids)
            return attempt.load_into(self._take_connection()) is None and all(mends)
        finally:
            self._connection = attempt.release()

    def _is_done(self, text: str) -> bool:
        attempt = self._edited(text)
        try:
            return attempt.load() is None and self._questions.passes(attempt, ())
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
        source, dtype = replace(self._failure.source, source=text), self._failure.dtype
        return AttemptRunner(self._box, source, short, dtype=dtype, memory=self._memory)

    def _left(self) -> float:
        """Return the seconds that are left. Raises OutOfTime."""
        if (left := self._deadline - time.monotonic()) <= 0:
            raise OutOfTime
        return left


def prove_lines(
    box: Box, limits: Limits, failure: Failure, reference: RememberingRunner, run_checks: RunChecks, bounds: Bounds
) -> tuple[ProvedLine, ...]:
    """Return the lines where one small edit makes every check pass; empty where there are none, or too many.

    Nothing is tried for an attempt that ended before its time, or in which something is not written yet.
    """
    skipped = {o.id for o in failure.outcomes if o.outcome == "skipped"}

    def is_right(call: Call) -> IsRight | None:
        if not is_comparable(call):
            return None
        right = reference.execute(call)
        return lambda reply: agree(reply, right)

    def passes(attempt: AttemptRunner, ids: Sequence[str]) -> bool:
        outcomes = run_checks(attempt, ids)
        if any(o.outcome == "timeout" for o in outcomes):
            raise OutOfTime
        return all(o.outcome == "passed" or o.id in skipped for o in outcomes)

    found = mending_edits(box, limits, failure, Questions(is_right, passes), bounds, reference.memory)
    return tuple(proved_line(failure.source, edit.line, edit.described) for edit in found)
