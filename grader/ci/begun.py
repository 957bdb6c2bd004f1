"""Which attempts of a submission somebody has worked on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ..course import Assignment, Course, Exercise
from ..submission import code_digest, read_attempt

Begun = Mapping[tuple[str, str], str]  # ids (assignment, exercise): the name of the file that counts


def begun_in(course: Course, handed_in: Path) -> Begun:
    """What differs from its stub, of a student's folder."""
    found = {}
    for assignment, exercise in every_exercise(course):
        stub = code_digest(course.released(assignment, exercise).read_text(encoding="utf-8"))
        folder, stem = handed_in / assignment.id, assignment.stem(exercise)
        source = read_attempt(folder, stem, stub, course.limits.source_kib)
        if not source.missing and (source.problem or code_digest(source.source) != stub):
            found[assignment.id, exercise.id] = source.name
    return found


def not_begun(course: Course, begun: Begun) -> frozenset[tuple[str, str]]:
    """The ids (assignment, exercise) of all others."""
    return frozenset((a.id, e.id) for a, e in every_exercise(course)) - begun.keys()


def every_exercise(course: Course) -> Iterator[tuple[Assignment, Exercise]]:
    """In the course's order."""
    return ((a, e) for a in course.assignments for e in a.exercises)
