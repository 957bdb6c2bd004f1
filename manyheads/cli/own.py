"""A student's own attempt at an exercise: where it is, whether it is started, and its visible checks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..course import Course, CourseError, Exercise
from ..result import ExerciseResult
from ..submission import AttemptSource, code_digest, read_attempt
from .last_check import facts, fingerprint_path, keep, last_result

if TYPE_CHECKING:
    from ..box.level import Box

PATIENCE = 2  # how many times the limits of grading: a laptop may be slow, and no points depend on it


def missing_message(course: Course, exercise: Exercise) -> str:
    """The message for an exercise whose file is missing, or has another name."""
    path = exercise.script
    others = sorted(p.name for p in path.parent.glob(f"*{exercise.id}*") if p.suffix in (path.suffix, ".ipynb"))
    if others:
        right = f"{exercise.stem}{Path(others[0]).suffix}"
        return f"{path.name} is not here, and {others[0]} is not read. Next: rename it to {right}, then: course check {exercise.id}"
    return f"{path.name} is not here. Next: git checkout {path.relative_to(course.root)}"


def is_started(exercise: Exercise, source: AttemptSource) -> bool:
    """Whether the attempt differs from the untouched stub."""
    return not source.missing and code_digest(source.source) != facts(exercise).stub


def check_one(course: Course, exercise: Exercise, source: AttemptSource, box: Box | None = None) -> ExerciseResult:
    """Run the visible checks of one attempt in a process of its own, and keep the result. `box`: an open box, if there is one."""
    from ..box.forked import open_own_box
    from ..public.attempt import check_source
    from ..public.file import read

    if box is None:
        with open_own_box() as own:
            return check_one(course, exercise, source, own)
    fingerprints = read(fingerprint_path(exercise))
    limits = course.limits.for_worker()
    patient = replace(
        limits,
        seconds_per_call=PATIENCE * limits.seconds_per_call,
        seconds_per_attempt=PATIENCE * limits.seconds_per_attempt,
    )
    result = check_source(fingerprints, source, box, patient, exercise=exercise)
    keep(exercise, source, result)
    return result


def own_attempt(course: Course, exercise: Exercise) -> AttemptSource:
    """The attempt in exercises/: the script, or the notebook if the script is untouched."""
    folder = exercise.script.parent
    return read_attempt(folder, exercise.stem, facts(exercise).stub, course.limits.source_kib)


def done_exercises(course: Course) -> set[Exercise]:
    """The exercises that the last check of their present text found done. Nothing is run."""
    done = set()
    for exercise in course.exercises:
        with suppress(CourseError):  # a recorded file is missing: whoever checks that exercise is told
            result = last_result(exercise, own_attempt(course, exercise))
            if result is not None and result.is_done:
                done.add(exercise)
    return done


def from_here(path: Path) -> Path:
    """The path, relative to the working folder where it is below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
