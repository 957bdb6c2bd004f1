"""Prove the line at which an attempt goes wrong: edited attempts in the box, against the calls that failed, then every check.

Edited texts are first looked at in one process, where they are loaded one after the other: that takes a tenth of the time.
Whatever is carried there from one to the next can only waste the look; what is told is proved in a process that has run
nothing else, as any attempt is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from ..box.connection import AttemptEnded, Connection, End
from ..box.level import Box
from ..box.replies import read_reply
from ..box.worker import wire
from ..box.worker.answers import Reply
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call, Load
from ..checks.implementation import Runner
from ..checks.outcome import CheckOutcome
from ..checks.recording import Exchange
from ..diagnosis.agree import agree, comparable
from ..lines.candidates import candidates
from ..lines.search import Bounds, OutOfTime, find_lines
from ..result import ProvedLine
from ..submission import AttemptSource
from ..submission.lines import proved_line
from ..submission.unwritten import is_unwritten
from .answered import target_of
from .attempt import AttemptRunner
from .memory import Memory

GRADED = Bounds(seconds=2.0)
ASKED = 8  # of the calls that failed, the most that an edited attempt is asked at first
_SEARCHED = ("passed", "failed", "error")  # how checks end where it makes sense to search
WrongCalls = Sequence[tuple[Call, Reply]]  # calls that were answered wrongly, with the right replies
RunChecks = Callable[[AttemptRunner, Sequence[str]], list[CheckOutcome]]  # of all checks, or of those with these ids


@dataclass(frozen=True)
class Failure:
    """What is known of an attempt that failed: its text, how its checks ended, what it was asked, in which dtype."""

    source: AttemptSource
    outcomes: Sequence[CheckOutcome]
    transcript: Sequence[Exchange]
    dtype: str

    @property
    def failed(self) -> list[CheckOutcome]:
        """The checks that did not pass."""
        return [o for o in self.outcomes if o.outcome not in ("passed", "skipped")]


def prove_lines(
    box: Box,
    limits: Limits,
    failure: Failure,
    reference: Runner,
    memory: Memory,
    run_checks: RunChecks,
    bounds: Bounds = GRADED,
) -> tuple[ProvedLine, ...]:
    """The lines where one small edit makes every check pass; empty where there are none, or too many.

    Nothing is tried for an attempt that ended before its time, or in which something is not written yet.
    """
    if not failure.failed or not _is_worth_it(failure):
        return ()
    asked = [e for e in failure.transcript if e.check in {o.id for o in failure.failed}]
    raised_on = {e.reply.raised.line for e in asked if e.reply.raised is not None and e.reply.raised.line}
    edits = candidates(failure.source.source, {target_of(e.call) for e in asked}, raised_on)
    if failure.source.cells:  # the lines at which cells begin must stay
        edits = [e for e in edits if e.after.count("\n") == e.before.count("\n")]
    trial = _Trial(box, limits, failure, memory, run_checks, _wrong_calls(asked, reference))
    trial.start(bounds.seconds)
    try:
        found = find_lines(edits, trial, bounds)
    finally:
        trial.close()
    return tuple(proved_line(failure.source, edit.line, edit.described) for edit in found)


def _is_worth_it(failure: Failure) -> bool:
    if any(o.outcome not in _SEARCHED for o in failure.outcomes if o.outcome != "skipped"):
        return False
    unwritten = any(e.reply.raised and e.reply.raised.type == "NotImplementedError" for e in failure.transcript)
    return not unwritten and not is_unwritten(failure.source.source)


def _wrong_calls(asked: Sequence[Exchange], reference: Runner) -> WrongCalls:
    """Calls that were answered otherwise than by the reference, small ones first, with the right replies."""
    found = [(e.call, reference.execute(e.call), e.reply) for e in asked if comparable(e)]
    wrong = [(call, right) for call, right, mine in found if not agree(mine, right)]
    return sorted(wrong, key=lambda each: _size(each[0]))[:ASKED]


def _size(call: Call) -> tuple[bool, int]:
    builds = [v for v in (call.subject, *call.args) if isinstance(v, Build)]
    values = [*call.args, *call.kwargs.values(), *(t for b in builds for t in (b.state or {}).values())]
    return call.cotangent is not None, sum(v.numel() for v in values if isinstance(v, Tensor))


class _Trial:
    """Edited attempts of one failure. Between looks, their process stays."""

    def __init__(
        self, box: Box, limits: Limits, failure: Failure, memory: Memory, run_checks: RunChecks, wrong: WrongCalls
    ) -> None:
        self._box, self._limits, self._failure, self._memory = box, limits, failure, memory
        self._run_checks, self._wrong = run_checks, wrong
        self._connection: Connection | None = None
        self._deadline = time.monotonic()

    def start(self, seconds: float) -> None:
        """Begin to count the time."""
        self._deadline = time.monotonic() + seconds

    def look(self, texts: Sequence[str]) -> list[bool]:
        """Whether each answers as the reference does where the attempt did not: the smallest such call, then others.

        Without such calls, whether the checks pass that failed, the first of them at first.
        """
        if not self._wrong:
            return [self._ended_well(self._passes_in_passing, text) for text in texts]
        first = self._answer(texts, self._wrong[:1])
        return [ok and self._ended_well(self._answers_all, text) for ok, text in zip(first, texts, strict=True)]

    def passes(self, text: str) -> bool:
        """Whether every check passes, in a process of its own."""
        return self._ended_well(self._is_done, text)

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ended_well(self, holds: Callable[[str], bool], text: str) -> bool:
        """Whether this holds of the text; not where its process ended. Raises OutOfTime."""
        try:
            return holds(text)
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise OutOfTime from None
            return False

    def _left(self) -> float:
        """The seconds that are left. Raises OutOfTime."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        return left

    def _answer(self, texts: Sequence[str], calls: WrongCalls) -> list[bool]:
        """Whether each text answers these calls as the reference does. Asked together; one by one if that goes wrong."""
        try:
            return self._answer_together(texts, calls)
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise OutOfTime from None
            return [self._ended_well(lambda one: all(self._answer_together([one], calls)), text) for text in texts]

    def _answers_all(self, text: str) -> bool:
        return all(self._answer_together([text], self._wrong))

    def _answer_together(self, texts: Sequence[str], calls: WrongCalls) -> list[bool]:
        given, dtype = self._failure.source, self._failure.dtype
        asked = [self._memory.pack(call, call.dtype or dtype) for call, _ in calls]
        packed = [each for text in texts for each in (wire.encode(Load(text, given.name, given.cells)), *asked)]
        connection = self._take_connection()
        replies = iter(connection.ask_all(packed, read_reply, self._left()))
        self._connection, connection.received = connection, 0
        found = []
        for _ in texts:
            loaded, mine = next(replies), [next(replies) for _ in calls]
            rights = (right for _, right in calls)
            found.append(loaded.raised is None and all(map(agree, mine, rights)))
        return found

    def _passes_in_passing(self, text: str) -> bool:
        attempt = self._runner(text)
        try:
            if attempt.load_into(self._take_connection()) is not None:
                return False
            failed = [o.id for o in self._failure.failed]
            return all(
                o.outcome == "passed" for ids in (failed[:1], failed[1:]) if ids for o in self._ran(attempt, ids)
            )
        finally:
            self._connection = attempt.release()

    def _is_done(self, text: str) -> bool:
        attempt = self._runner(text)
        try:
            if attempt.load() is not None:
                return False
            skipped = {o.id for o in self._failure.outcomes if o.outcome == "skipped"}
            return all(o.outcome == "passed" or o.id in skipped for o in self._ran(attempt, ()))
        finally:
            attempt.close()

    def _ran(self, attempt: AttemptRunner, ids: Sequence[str]) -> list[CheckOutcome]:
        outcomes = self._run_checks(attempt, ids)
        if any(o.outcome == "timeout" for o in outcomes):
            raise OutOfTime
        return outcomes

    def _take_connection(self) -> Connection:
        self._left()
        connection, self._connection = self._connection, None
        return connection or self._box.attempt(self._limits)

    def _runner(self, text: str) -> AttemptRunner:
        left = self._left()
        short = replace(
            self._limits,
            seconds_per_call=min(left, self._limits.seconds_per_call),
            seconds_per_attempt=min(left, self._limits.seconds_per_attempt),
        )
        given = replace(self._failure.source, source=text)
        return AttemptRunner(self._box, given, short, dtype=self._failure.dtype, memory=self._memory)
