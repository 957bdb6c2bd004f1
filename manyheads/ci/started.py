"""Which exercises of a submission the student has started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..course import Course
from ..submission import code_digest, read_attempt

Started = Mapping[tuple[str, str], str]  # ids (assignment, exercise): the name of the file that counts


def started_in(course: Course, handed_in: Path) -> Started:
    """The attempts in a student's folder that differ from their stubs."""
    found = {}
    for exercise in course.exercises:
        stub = code_digest(exercise.script.read_text(encoding="utf-8"))
        folder, stem = handed_in / exercise.assignment.id, exercise.stem
        source = read_attempt(folder, stem, stub, course.limits.source_kib)
        if not source.missing and (source.problem or code_digest(source.source) != stub):
            found[exercise.assignment.id, exercise.id] = source.name
    return found


def not_started(course: Course, started: Started) -> frozenset[tuple[str, str]]:
    """The ids (assignment, exercise) of all other exercises."""
    return frozenset((e.assignment.id, e.id) for e in course.exercises) - started.keys()
