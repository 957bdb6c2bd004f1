"""The real course's exercises and what is recorded of them."""

from collections.abc import Callable
from functools import cache

from manyheads.box.worker.messages import Traced
from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.student.choose_example_calls import Example, examples
from manyheads.student.trace import Explained
from tests.make import REPOSITORY

FollowSource = Callable[..., list[tuple[Example, Traced]]]
Explain = Callable[..., list[Explained]]


@cache
def course() -> Course:
    """The course of this repository."""
    return load_course(REPOSITORY)


def exercise_of(id_: str) -> Exercise:
    """Its exercise of that id."""
    return next(exercise for exercise in course().exercises if exercise.id == id_)


@cache
def looks_at(id_: str) -> list[Example]:
    """The recorded calls of an exercise that are looked at."""
    exercise = exercise_of(id_)
    return examples(exercise, read(exercise.fingerprints))


def solution(id_: str) -> str:
    """The source of the reference."""
    return exercise_of(id_).solution.read_text(encoding="utf-8")
