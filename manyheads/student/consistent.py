"""Whether the parts of a fingerprint file fit each other: one that was edited by hand may be read, and fail only later."""

from __future__ import annotations

from ..course import CourseError
from ..diagnosis.recording import Recording
from ..diagnosis.recording_file import UNREADABLE
from ..errors import restore


def refuse_what_does_not_fit(recording: Recording, path: object) -> None:
    """Raise CourseError where a part names what the file does not hold."""
    try:
        fit = _calls_fit(recording) and _answers_fit(recording) and _pairs_fit(recording)
    except UNREADABLE:  # a reply that cannot be made
        fit = False
    if not fit:
        raise CourseError(f"{path} was changed: its parts do not fit each other. {restore(path)}")


def _calls_fit(recording: Recording) -> bool:
    """Return whether each call has its answers, can be made, and each check asks calls that are there."""
    calls = recording.calls
    if not len(calls) == len(recording.expected) == len(recording.replies):
        return False
    return (
        all(recording.replies)
        and all(isinstance(step.args, tuple) and isinstance(step.kwargs, dict) for call in calls for step in call.steps)
        and all(0 <= index < len(calls) for check in recording.checks for index in check.asked)
    )


def _answers_fit(recording: Recording) -> bool:
    """Return whether each mutant answers each call with a reply that is there."""
    replies = recording.replies
    return all(
        len(mutant.answers) == len(replies)
        and all(i is None or 0 <= i < len(known) for i, known in zip(mutant.answers, replies, strict=True))
        for mutant in recording.mutants
    )


def _pairs_fit(recording: Recording) -> bool:
    """Return whether each pair is of two mutants, on a call, with an answer."""
    pairs = recording.pairs
    answers = pairs.answers
    parts = (
        (pairs.first, len(recording.mutants)),
        (pairs.second, len(recording.mutants)),
        (pairs.probe, len(recording.calls)),
    )
    rows = len(pairs.first) if pairs.first.dim() == 1 else -1
    return (
        all(part.shape == (rows,) and all(0 <= i < most for i in part.tolist()) for part, most in parts)
        and answers.structure.shape == (rows,)
        and all(part.dim() == 2 and len(part) == rows for part in (answers.numbers, answers.scales))
    )
