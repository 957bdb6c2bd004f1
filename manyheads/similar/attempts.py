"""The attempts of a class at one exercise, as text: scripts and notebooks alike."""

from __future__ import annotations

from collections.abc import Iterable

from ..course import Course, CourseError, Exercise
from ..errors import restore
from ..submission import Submission, code_digest, read_exercise


def attempts_of(course: Course, exercise: Exercise, submissions: Iterable[Submission]) -> dict[str, str]:
    """Student → source, without missing and unreadable attempts and untouched stubs."""
    untouched = code_digest(stub_text(exercise))
    found = {}
    for submission in submissions:
        if submission.assignment == exercise.assignment:
            attempt = read_exercise(submission.folder, exercise, untouched, course.limits.source_kib)
            if not attempt.missing and not attempt.problem and code_digest(attempt.source) != untouched:
                found[submission.student] = attempt.source
    return found


def stub_text(exercise: Exercise) -> str:
    """The text of the stub, which all attempts have in common. Raises CourseError if it is missing."""
    path = exercise.script
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise CourseError(f"{path} is missing. {restore(path)}") from None
