"""How far a student is: with one exercise, with the course, and what comes next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ..course import Course, Exercise
from ..result import ExerciseResult
from .own_attempt import from_here

ALL_DONE = "All done."


class Rung(NamedTuple):
    """Where a student stands with one exercise. asked: id and title of each visible check.

    result: None where nothing was checked. is_missing: whether there is no file.
    """

    exercise: Exercise
    check_titles: Sequence[tuple[str, str]]
    result: ExerciseResult | None = None
    is_missing: bool = False

    @property
    def state(self) -> str:
        """How far it is."""
        if self.result:
            return "done" if self.result.is_done else "in progress"
        return "missing" if self.is_missing else "untouched"

    @property
    def score(self) -> float:
        """The points that are seen here."""
        return (self.result and self.result.score) or 0.0

    @property
    def checklist(self) -> list[tuple[str, bool]]:
        """The title of each visible check, and whether the attempt passes it."""
        passed = (
            {check.id for check in self.result.checks if check.outcome == "passed"}
            if self.result
            else set()
        )
        return [(title, id_ in passed) for id_, title in self.check_titles]


def welcome(course: Course) -> list[str]:
    """For a student who has begun nothing."""
    count, first_script = len(course.exercises), from_here(course.exercises[0].script)
    exercises = "one exercise" if count == 1 else f"{count} exercises, one file each"
    return [
        (
            f"Welcome to {course.title}: {exercises}. Nothing is begun yet, so there is nothing "
            "to check."
        ),
        (
            f"Open {first_script} (or the notebook beside it), read the lesson, and fill what says"
            " YOUR CODE HERE."
        ),
        (
            "Next: check it as soon as one function is written, then: course check "
            f"{course.exercises[0].id}"
        ),
    ]


def after_done(exercise: Exercise) -> list[str]:
    """For an exercise of which every check passes."""
    lines = [f"Why it works: {exercise.why}"] if exercise.why else []
    finished = exercise.root / "model-solutions" / exercise.assignment.id / exercise.solution.name
    if finished.exists():
        lines.append(f"A finished module, to read beside yours: {from_here(finished)}")
    if exercise.train is not None:
        lines.append(f"It can learn to write now: course train {exercise.id}")
    lines.append(f"Five questions on your own code: course ask {exercise.id}")
    return lines


def next_exercise(
    course: Course, completed: Collection[Exercise], after: Exercise
) -> Exercise | None:
    """Return the first exercise after this one that is not done, else the first at all; None where
    all are done.
    """
    exercises = course.exercises
    position = exercises.index(after) + 1
    return next(
        (
            exercise
            for exercise in (*exercises[position:], *exercises[:position])
            if exercise not in completed
        ),
        None,
    )


def going_on(course: Course, completed: Collection[Exercise], after: Exercise) -> str:
    """Return the sentence about the exercise that comes next, with the command that checks it."""
    upcoming = next_exercise(course, completed, after)
    if upcoming is None:
        return ALL_DONE
    where = f"go on with {upcoming.title}, in {from_here(upcoming.script)}"
    return f"Next: {where}, then: course check {upcoming.id}"
