"""What students wrote for one exercise, as text: scripts and notebooks alike."""

from __future__ import annotations

from collections.abc import Iterable

from ..course import Course, CourseError, Exercise
from ..submission import Submission, code_digest, read_attempt


def written(course: Course, exercise: Exercise, submissions: Iterable[Submission]) -> dict[str, str]:
    """Student → source. Left out: who handed in nothing, nothing that can be read, or the untouched stub."""
    untouched = code_digest(given(exercise))
    found = {}
    for submission in submissions:
        if submission.assignment == exercise.assignment:
            stem = exercise.stem
            attempt = read_attempt(submission.folder, stem, untouched, course.limits.source_kib)
            if not attempt.missing and not attempt.problem and code_digest(attempt.source) != untouched:
                found[submission.student] = attempt.source
    return found


def given(exercise: Exercise) -> str:
    """The stub, which everybody has in common. Raises CourseError where it is not there."""
    path = exercise.script
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise CourseError(f"{path} is missing. Next (as an instructor): course release") from None
