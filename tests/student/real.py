"""The exercises of the real course, their example calls and their reference solutions."""

from functools import cache

from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.student.choose_example_calls import Example, examples
from tests.make import REPOSITORY


@cache
def load_real_course() -> Course:
    """Return the course of this repository."""
    return load_course(REPOSITORY)


def exercise_of(id_: str) -> Exercise:
    """Return the exercise with this id."""
    return next(exercise for exercise in load_real_course().exercises if exercise.id == id_)


@cache
def example_calls(id_: str) -> list[Example]:
    """Return the recorded calls of an exercise that its traces and pictures show."""
    exercise = exercise_of(id_)
    return examples(exercise, read(exercise.fingerprints))


def reference_source(id_: str) -> str:
    """Return the source of the reference solution."""
    return exercise_of(id_).solution.read_text(encoding="utf-8")
