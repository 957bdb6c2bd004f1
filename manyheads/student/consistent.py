"""Whether the parts of a fingerprint file fit each other: one that was edited by hand may be read, and fail only later."""

from __future__ import annotations

from collections.abc import Iterator

from ..course import CourseError
from ..diagnosis.recording import Recording
from ..diagnosis.recording_file import UNREADABLE
from ..errors import restore


def refuse_what_does_not_fit(recording: Recording, path: object) -> None:
    """Raise CourseError where a part names what the file does not hold."""
    try:
        fit = all(_fits(recording))
    except UNREADABLE:  # a reply that cannot be made
        fit = False
    if not fit:
        raise CourseError(f"{path} was changed: its parts do not fit each other. {restore(path)}")


def _fits(recording: Recording) -> Iterator[bool]:
    """Yield whether each call has its answers, each check its calls, each mutant its replies, and each pair its mutants."""
    calls, replies, mutants, pairs = recording.calls, recording.replies, recording.mutants, recording.pairs
    yield len(calls) == len(recording.expected) == len(replies) and all(replies)
    yield all(isinstance(step.args, tuple) and isinstance(step.kwargs, dict) for call in calls for step in call.steps)
    yield all(0 <= index < len(calls) for check in recording.checks for index in check.asked)
    for mutant in mutants:
        yield len(mutant.answers) == len(replies)
        yield all(i is None or 0 <= i < len(known) for i, known in zip(mutant.answers, replies, strict=True))
    rows = len(pairs.first) if pairs.first.dim() == 1 else -1
    for part, most in ((pairs.first, len(mutants)), (pairs.second, len(mutants)), (pairs.probe, len(calls))):
        yield part.shape == (rows,) and all(0 <= i < most for i in part.tolist())
    yield pairs.answers.structure.shape == (rows,)
    yield all(part.dim() == 2 and len(part) == rows for part in (pairs.answers.numbers, pairs.answers.scales))
