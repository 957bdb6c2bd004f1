"""Prove the line at which a student's own attempt goes wrong: one edit of it, after which every visible check passes."""

from __future__ import annotations

from collections.abc import Sequence

from ..box.level import Box
from ..box.worker.limits import Limits
from ..box.worker.messages import Call
from ..diagnosis.dropout_extremes import settled
from ..diagnosis.edit_search import Bounds, OutOfTime
from ..diagnosis.fingerprint import fingerprint_beside
from ..diagnosis.recording import Fingerprints, differs
from ..judge.attempt_runner import AttemptRunner
from ..judge.prove_line import Failure, IsRight, Questions, mending_edits
from ..result import ProvedLine
from ..submission import proved_line
from .check_attempt import visible_results

WAITED_FOR = Bounds(seconds=5.0)  # a student waits


def prove_own_lines(
    fingerprints: Fingerprints, failure: Failure, box: Box, limits: Limits, bounds: Bounds = WAITED_FOR
) -> tuple[ProvedLine, ...]:
    """Return the lines, without the edits: a place is told, and not what to write there."""
    places = {id(call): index for index, call in enumerate(fingerprints.calls)}

    def is_right(call: Call) -> IsRight | None:
        if id(call) not in places:
            return None
        index, right = places[id(call)], fingerprints.content.right(places[id(call)])
        return lambda reply: not differs(fingerprints, index, fingerprint_beside(right, call, settled(call, reply)))

    def passes(edited: AttemptRunner, ids: Sequence[str]) -> bool:
        for check in visible_results(fingerprints, edited, ids):
            if check.outcome == "timeout":
                raise OutOfTime
            if check.outcome != "passed":
                return False
        return True

    found = mending_edits(box, limits, failure, Questions(is_right, passes), bounds)
    return tuple(proved_line(failure.source, edit.line) for edit in found)
