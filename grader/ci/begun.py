"""Which attempts of a submission somebody has worked on."""

from __future__ import annotations

from pathlib import Path

from ..course import Assignment, Course, Exercise
from ..submission import AttemptSource, code_digest, read_attempt


def attempt_in(course: Course, assignment: Assignment, exercise: Exercise, folder: Path) -> AttemptSource:
    """The attempt that counts, of a submission's folder."""
    return read_attempt(
        folder, assignment.stem(exercise), _untouched(course, assignment, exercise), course.limits.source_kib
    )


def is_begun(course: Course, assignment: Assignment, exercise: Exercise, folder: Path) -> bool:
    """Whether there is an attempt that differs from the stub."""
    source = attempt_in(course, assignment, exercise, folder)
    if source.missing:
        return False
    return bool(source.problem) or code_digest(source.source) != _untouched(course, assignment, exercise)


def not_begun(course: Course, handed_in: Path) -> frozenset[tuple[str, str]]:
    """The ids (assignment, exercise) of what nobody has worked on, of a student's folder."""
    every = ((a, e) for a in course.assignments for e in a.exercises)
    return frozenset((a.id, e.id) for a, e in every if not is_begun(course, a, e, handed_in / a.id))


def _untouched(course: Course, assignment: Assignment, exercise: Exercise) -> str:
    return code_digest(course.released(assignment, exercise).read_text(encoding="utf-8"))
