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
SECONDS_PER_CALL = 1.0  # a hundred times what a call needs; an edited attempt that takes longer ends the search
ASKED = 8  # of the calls that failed, the most that an edited attempt is asked at first
_SEARCHED = ("passed", "failed", "error")  # how checks end where it makes sense to search
RunChecks = Callable[[AttemptRunner, Sequence[str]], list[CheckOutcome]]  # of all checks, or of those with these ids


@dataclass(frozen=True)
class Failure:
    """What is known of an attempt that failed: its text, how its checks ended, what it was asked, in which dtype."""

    source: AttemptSource
    outcomes: Sequence[CheckOutcome]
    transcript: Sequence[Exchange]
    dtype: str


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
    started = time.monotonic()
    failed = [o for o in failure.outcomes if o.outcome not in ("passed", "skipped")]
    if not failed or not _is_worth_it(failure):
        return ()
    asked = [e for e in failure.transcript if e.check in {o.id for o in failed}]
    raised_on = {e.reply.raised.line for e in asked if e.reply.raised is not None and e.reply.raised.line}
    edits = candidates(failure.source.source, {target_of(e.call) for e in asked}, raised_on)
    if failure.source.cells:  # the lines at which cells begin must stay
        edits = [e for e in edits if e.after.count("\n") == e.before.count("\n")]
    short = replace(limits, seconds_per_call=min(SECONDS_PER_CALL, limits.seconds_per_call))
    wrong = _wrong_calls(asked, reference)
    with_trial = _Trial(box, short, failure, memory, run_checks, wrong, [o.id for o in failed])
    try:
        found = find_lines(edits, with_trial, bounds, lambda: time.monotonic() - started < bounds.seconds)
    finally:
        with_trial.close()
    return tuple(proved_line(failure.source, edit.line, edit.described) for edit in found)


def _is_worth_it(failure: Failure) -> bool:
    if any(o.outcome not in _SEARCHED for o in failure.outcomes if o.outcome != "skipped"):
        return False
    unwritten = any(e.reply.raised and e.reply.raised.type == "NotImplementedError" for e in failure.transcript)
    return not unwritten and not is_unwritten(failure.source.source)


def _wrong_calls(asked: Sequence[Exchange], reference: Runner) -> list[tuple[Call, Reply]]:
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
        self,
        box: Box,
        limits: Limits,
        failure: Failure,
        memory: Memory,
        run_checks: RunChecks,
        wrong: Sequence[tuple[Call, Reply]],
        failed: Sequence[str],
    ) -> None:
        self._box, self._limits, self._failure, self._memory = box, limits, failure, memory
        self._run_checks, self._wrong, self._failed = run_checks, wrong, failed
        self._connection: Connection | None = None

    def may_pass(self, source: str) -> bool:
        """Whether it answers as the reference does where the attempt did not; without such calls, whether the checks
        pass that failed, the first of them at first."""
        try:
            if self._wrong:
                return all(self._answers(source, some) for some in (self._wrong[:1], self._wrong[1:]) if some)
            return self._passes_in_passing(source)
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise OutOfTime from None
            return False

    def passes(self, source: str) -> bool:
        """Whether every check passes, in a process of its own."""
        attempt = self._runner(source)
        try:
            if attempt.load() is not None:
                return False
            outcomes = self._run_checks(attempt, ())
        except AttemptEnded as ended:
            if ended.end is End.TIMEOUT:
                raise OutOfTime from None
            return False
        finally:
            attempt.close()
        if any(o.outcome == "timeout" for o in outcomes):
            raise OutOfTime
        skipped = {o.id for o in self._failure.outcomes if o.outcome == "skipped"}
        return all(o.outcome == "passed" or o.id in skipped for o in outcomes)

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _answers(self, source: str, calls: Sequence[tuple[Call, Reply]]) -> bool:
        """Whether the text, loaded, answers these calls as the reference does."""
        given = self._failure.source
        load = wire.encode(Load(source, given.name, given.cells))
        packed = [load, *(self._memory.pack(call, call.dtype or self._failure.dtype) for call, _ in calls)]
        connection, self._connection = self._connection or self._box.attempt(self._limits), None
        patience = self._box.start_seconds + self._limits.seconds_per_call
        loaded, *replies = connection.ask_all(packed, read_reply, patience)
        self._connection, connection.received = connection, 0
        return loaded.raised is None and all(
            agree(reply, right) for reply, (_, right) in zip(replies, calls, strict=True)
        )

    def _passes_in_passing(self, source: str) -> bool:
        attempt = self._runner(source)
        connection, self._connection = self._connection or self._box.attempt(self._limits), None
        try:
            if attempt.load_into(connection) is not None:
                return False
            some = (self._failed[:1], self._failed[1:])
            return all(o.outcome == "passed" for ids in some if ids for o in self._run_checks(attempt, ids))
        finally:
            self._connection = attempt.release()

    def _runner(self, source: str) -> AttemptRunner:
        given = replace(self._failure.source, source=source)
        return AttemptRunner(self._box, given, self._limits, dtype=self._failure.dtype, memory=self._memory)
