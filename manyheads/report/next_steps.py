"""What is said where something is done: why it works, how far the student is, and what comes next."""

from __future__ import annotations

from collections.abc import Collection

from ..course import Course, Exercise


def welcome(course: Course, first: str) -> list[str]:
    """For a student who has begun nothing. first: the path of the first exercise, as seen from here."""
    count = len(course.exercises)
    exercises = "one exercise" if count == 1 else f"{count} exercises, one file each"
    return [
        f"Welcome to {course.title}: {exercises}. Nothing is begun yet, so there is nothing to check.",
        f"Open {first} (or the notebook beside it), read the lesson, and fill what says YOUR CODE HERE.",
        f"Next: course check {course.exercises[0].id}, as soon as one function is written; course status shows them all",
    ]


def after_done(exercise: Exercise) -> list[str]:
    """For an exercise of which every check passes."""
    lines = [f"Why it works: {exercise.why}"] if exercise.why else []
    if exercise.train is not None:
        lines.append(f"It can learn to write now, in about a minute: course train {exercise.id}")
    if exercise.generate is not None:
        lines.append(f"It can write now, with its own cache and without: course generate {exercise.id}")
    return lines


def how_far(course: Course, done: Collection[Exercise]) -> str:
    """3 of 8 done."""
    return f"{len(done)} of {len(course.exercises)} done."


def following(course: Course, done: Collection[Exercise], after: Exercise) -> Exercise | None:
    """The exercise to do next: the first after this one that is not done, else the first; None where all are done."""
    every = course.exercises
    place = every.index(after) + 1
    return next((each for each in (*every[place:], *every[:place]) if each not in done), None)


def all_done(course: Course) -> list[str]:
    """For a student who has done everything: the page that shows it, where there is an exercise to train."""
    able = [each.id for each in course.exercises if each.train is not None]
    if not able:
        return ["All done."]
    return [
        "All done. One thing more: a page with your own heads, how they learned, and the text that they write.",
        f"Next: course train {able[-1]} --page",
    ]
