"""Prove the line at which a student's own attempt goes wrong: one edit of it, after which every visible check passes."""

from __future__ import annotations

from functools import partial

from ..box.level import Box
from ..box.worker import wire
from ..box.worker.answers import Reply
from ..box.worker.limits import Limits
from ..checks.cast import cast
from ..checks.transcript import Exchange, target_of
from ..diagnosis.dropout_extremes import settled
from ..diagnosis.edit_search import Bounds, OutOfTime
from ..diagnosis.fingerprint import fingerprint_beside
from ..diagnosis.recording import Fingerprints, differs
from ..judge.attempt_runner import AttemptRunner
from ..judge.edited_attempts import Asked, Questions, mending_edits
from ..judge.prove_line import lines_of_exceptions, size_of, something_is_unwritten
from ..result import ExerciseResult, ProvedLine
from ..submission import AttemptSource, proved_line
from .check_attempt import visible_results

WAITED_FOR = Bounds(seconds=5.0)  # a student waits
_SEARCHED = ("passed", "failed", "error")


def prove_own_lines(
    fingerprints: Fingerprints,
    source: AttemptSource,
    attempt: AttemptRunner,
    result: ExerciseResult,
    box: Box,
    limits: Limits,
    bounds: Bounds = WAITED_FOR,
) -> tuple[ProvedLine, ...]:
    """Return the lines, without the edits: a place is told, and not what to write there.

    Args:
        fingerprints: the exercise's recording.
        source: the attempt.
        attempt: what has answered the checks, closed or not.
        result: how they ended.
        box: where edited attempts run.
        limits: of an edited attempt.
        bounds: of the search.
    """
    failed = [check.id for check in result.checks if check.outcome != "passed"]
    is_over = any(check.outcome not in _SEARCHED for check in result.checks)
    if not failed or is_over or something_is_unwritten(source.source, attempt.transcript):
        return ()
    asked = [e for e in attempt.transcript if e.check in failed]

    def runner(edited: AttemptSource, short: Limits) -> AttemptRunner:
        return AttemptRunner(box, edited, short, dtype=attempt.dtype)

    found = mending_edits(
        box,
        source,
        runner,
        limits,
        _questions(fingerprints, asked, attempt.dtype, failed),
        {target_of(e.call) for e in asked},
        lines_of_exceptions(asked),
        bounds,
    )
    return tuple(proved_line(source, edit.line) for edit in found)


def _questions(fingerprints: Fingerprints, exchanges: list[Exchange], dtype: str, failed: list[str]) -> Questions:
    places = {id(call): index for index, call in enumerate(fingerprints.calls)}

    def is_right(index: int, reply: Reply) -> bool:
        right, call = fingerprints.content.right(index), fingerprints.calls[index]
        return not differs(fingerprints, index, fingerprint_beside(right, call, settled(call, reply)))

    def passes(attempt: AttemptRunner, ids: list[str]) -> bool:
        for check in visible_results(fingerprints, attempt, ids):
            if check.outcome == "timeout":
                raise OutOfTime
            if check.outcome != "passed":
                return False
        return True

    recorded = sorted((e for e in exchanges if id(e.call) in places), key=lambda e: size_of(e.call))
    wrong = [e for e in recorded if not is_right(places[id(e.call)], e.reply)]
    return Questions(
        [Asked(wire.encode(cast(e.call, e.call.dtype or dtype)), partial(is_right, places[id(e.call)])) for e in wrong],
        mends=lambda attempt: passes(attempt, failed),
        is_done=lambda attempt: passes(attempt, []),
    )
