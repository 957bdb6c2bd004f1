"""A student's own attempt at an exercise: where it is, whether it is started, and its visible checks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from ..course import Course, CourseError, Exercise
from ..result import ExerciseResult
from ..submission import AttemptSource, Unreadable, code_digest, read_attempt, read_bytes
from ..submission.read import read_file
from .last_check import facts, fingerprint_path, keep, last_result

if TYPE_CHECKING:
    from ..box.level import Box

PATIENCE = 2  # how many times the limits of grading: a laptop may be slow, and no points depend on it


def missing_message(course: Course, exercise: Exercise) -> str:
    """Return the message for an exercise whose file is missing, or has another name."""
    path = exercise.script
    if others := other_names(course, exercise):
        right = f"{exercise.stem}{Path(others[0]).suffix}"
        return f"{path.name} is not here, and {others[0]} is not read.\nNext: rename it to {right}, then: course check {exercise.id}"
    return f"{path.name} is not here.\nNext: git checkout {quote(str(from_here(path)))}"


def other_names(course: Course, exercise: Exercise) -> list[str]:
    """Return the files beside the exercise's own that have nearly its name or define what it asks for, and are read for no exercise."""
    own = {path.name for other in course.exercises for path in (other.script, other.notebook)}
    files = (path for path in exercise.script.parent.glob("*") if path.suffix in (".py", ".ipynb"))
    others = sorted(path.name for path in files if path.name not in own)
    near = get_close_matches(exercise.script.name, others, n=1, cutoff=0.85)
    named = [name for name in others if exercise.id in name] or near
    return named or [name for name in others if _is_of(course, exercise, exercise.script.with_name(name))]


def _is_of(course: Course, exercise: Exercise, path: Path) -> bool:
    """Return whether a file of any name defines what this exercise alone asks for."""
    from ..submission.which_exercise import Exercises, NotPlaced, Reading

    try:
        return Exercises(course).of(path.name, read_bytes(path, course.limits.source_kib), Reading()) == exercise
    except (NotPlaced, Unreadable):
        return False


def is_started(exercise: Exercise, source: AttemptSource) -> bool:
    """Return whether the attempt differs from the untouched stub."""
    return not source.missing and code_digest(source.source) != facts(exercise).stub


def why_unstarted(course: Course, exercise: Exercise, source: AttemptSource, command: str) -> list[str]:
    """Return why nothing of the student's can run, and what comes next; nothing where something can."""
    if source.missing:
        return missing_message(course, exercise).splitlines()
    if not source.problem and is_started(exercise, source):
        return []
    first = "mend the file" if source.problem else f"fill the first stub of {exercise.stem}"
    return [
        source.problem or f"{exercise.id} is not started yet: there is nothing to {command}.",
        f"Next: {first}, then: course {command} {exercise.id}",
    ]


def check_one(course: Course, exercise: Exercise, source: AttemptSource, box: Box | None = None) -> ExerciseResult:
    """Run the visible checks of one attempt in a process of its own, and keep the result. `box`: an open box, if there is one."""
    from ..box.forked import open_own_box
    from ..diagnosis.recording_file import read
    from ..student.consistent import refuse_what_does_not_fit
    from ..student.run_attempt import check_source

    if box is None:
        with open_own_box(meta=True) as own:
            return check_one(course, exercise, source, own)
    path = fingerprint_path(exercise)
    refuse_what_does_not_fit(fingerprints := read(path), path)
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
    """Return the attempt in exercises/: the script, or the notebook where that alone is worked on, or there.

    Missing, too, where the script has another name and in the notebook nothing is written.
    """
    script = exercise.script
    source = read_attempt(script.parent, exercise.stem, facts(exercise).stub, course.limits.source_kib)
    if source.missing or is_started(exercise, source):
        return source
    if script.exists():
        return read_file(script, course.limits.source_kib)
    return AttemptSource(script.name, missing=True) if other_names(course, exercise) else source


def own_or_reference(course: Course, exercise: Exercise) -> tuple[AttemptSource | None, bool]:
    """Return the student's attempt; where nothing can run, the reference, and True, in the instructor's repository; else None."""
    source = own_attempt(course, exercise)
    if not source.problem and is_started(exercise, source):
        return source, False
    solution = exercise.solution
    if source.problem or not solution.exists():
        return None, False
    return AttemptSource(solution.name, solution.read_text(encoding="utf-8")), True


def done_exercises(course: Course) -> set[Exercise]:
    """Return the exercises that the last check of their present text found done. Nothing is run."""
    done = set()
    for exercise in course.exercises:
        with suppress(CourseError):  # a recorded file is missing: whoever checks that exercise is told
            result = last_result(exercise, own_attempt(course, exercise))
            if result is not None and result.is_done:
                done.add(exercise)
    return done


def from_here(path: Path) -> Path:
    """Return the path, relative to the working folder where it is below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
