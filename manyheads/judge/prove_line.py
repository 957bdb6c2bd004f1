"""Prove the line at which an attempt goes wrong: one edit of it, after which every hidden check passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from ..box.level import Box
from ..box.worker.limits import Limits
from ..box.worker.messages import Build, Call
from ..checks.explain import is_left_open, says_unwritten
from ..checks.implementation import Runner
from ..checks.outcome import CheckOutcome
from ..checks.transcript import Exchange, target_of
from ..diagnosis.agree import agree, is_comparable
from ..diagnosis.edit_search import Bounds, OutOfTime
from ..result import ProvedLine
from ..submission import AttemptSource, proved_line
from ..submission.unwritten import is_unwritten
from .attempt_runner import AttemptRunner
from .edited_attempts import Asked, Questions, mending_edits
from .memory import Memory

GRADED = Bounds(seconds=2.0)
_SEARCHED = ("passed", "failed", "error", "skipped")  # how checks end where it makes sense to search
RunChecks = Callable[[AttemptRunner, Sequence[str]], list[CheckOutcome]]  # of all checks, or of those with these ids


@dataclass(frozen=True)
class Failure:
    """What is known of an attempt that failed: its text, how its checks ended, what it was asked, in which dtype."""

    source: AttemptSource
    outcomes: Sequence[CheckOutcome]
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


def prove_lines(
    box: Box,
    limits: Limits,
    failure: Failure,
    reference: Runner,
    memory: Memory,
    run_checks: RunChecks,
    bounds: Bounds = GRADED,
) -> tuple[ProvedLine, ...]:
    """Return the lines where one small edit makes every check pass; empty where there are none, or too many.

    Nothing is tried for an attempt that ended before its time, or in which something is not written yet.
    """
    is_over = any(o.outcome not in _SEARCHED for o in failure.outcomes)
    if not failure.failed or is_over or something_is_unwritten(failure.source.source, failure.transcript):
        return ()

    def runner(source: AttemptSource, short: Limits) -> AttemptRunner:
        return AttemptRunner(box, source, short, dtype=failure.dtype, memory=memory)

    found = mending_edits(
        box,
        failure.source,
        runner,
        limits,
        _questions(failure, reference, memory, run_checks),
        {target_of(e.call) for e in failure.asked},
        lines_of_exceptions(failure.asked),
        bounds,
    )
    return tuple(proved_line(failure.source, edit.line, edit.described) for edit in found)


def something_is_unwritten(source: str, transcript: Sequence[Exchange]) -> bool:
    """Return whether the attempt is a stub still, or a part of it is."""
    raised = [e.reply.raised for e in transcript]
    return any(says_unwritten(exception) or is_left_open(exception) for exception in raised) or is_unwritten(source)


def lines_of_exceptions(exchanges: Sequence[Exchange]) -> set[int]:
    """Return the student's lines at which these calls ended in an exception."""
    return {e.reply.raised.line for e in exchanges if e.reply.raised is not None and e.reply.raised.line}


def size_of(call: Call) -> tuple[bool, int]:
    """By which small calls come first, and those that ask for gradients last."""
    builds = [v for v in call.given if isinstance(v, Build)]
    values = [*call.given, *(t for b in builds for t in (b.state or {}).values())]
    return call.cotangent is not None, sum(v.numel() for v in values if isinstance(v, Tensor))


def _questions(failure: Failure, reference: Runner, memory: Memory, run_checks: RunChecks) -> Questions:
    found = [(e.call, reference.execute(e.call), e.reply) for e in failure.asked if is_comparable(e.call)]
    wrong = sorted((each for each in found if not agree(each[2], each[1])), key=lambda each: size_of(each[0]))
    asked = [Asked(memory.pack(call, call.dtype or failure.dtype), partial(agree, right)) for call, right, _ in wrong]
    skipped = {o.id for o in failure.outcomes if o.outcome == "skipped"}

    def passes(attempt: AttemptRunner, ids: Sequence[str]) -> bool:
        outcomes = run_checks(attempt, ids)
        if any(o.outcome == "timeout" for o in outcomes):
            raise OutOfTime
        return all(o.outcome == "passed" or o.id in skipped for o in outcomes)

    return Questions(
        asked,
        mends=lambda attempt: all(passes(attempt, ids) for ids in (failure.failed[:1], failure.failed[1:]) if ids),
        is_done=lambda attempt: passes(attempt, ()),
    )
