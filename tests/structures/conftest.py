"""A small course whose functions return several things, and whose class is handed back what it returned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.box.level import Box
from manyheads.course import Course, Exercise, load_course
from manyheads.diagnosis import load_bank
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from manyheads.submission import AttemptSource

STREAMS = Path(__file__).parents[1] / "stateful_course"
MUTANTS = [(e.id, m.id) for e in load_course(STREAMS).exercises for m in load_bank(e).mutants]

Graded = Callable[[str, str], ExerciseResult]


@pytest.fixture(scope="session")
def streams() -> Course:
    """The course where it stands: not to be written to."""
    return load_course(STREAMS)


@pytest.fixture(scope="session")
def exercise_of(streams: Course) -> Callable[[str], Exercise]:
    """An exercise by its id."""
    return {exercise.id: exercise for exercise in streams.exercises}.__getitem__


@pytest.fixture(scope="session")
def mutant_of(exercise_of: Callable[[str], Exercise]) -> Callable[[str, str], str]:
    """The source of a mutant, by its exercise and its misconception."""

    def source(exercise: str, misconception: str) -> str:
        return next(m.source for m in load_bank(exercise_of(exercise)).mutants if m.id == misconception)

    return source


@pytest.fixture(scope="session")
def scored(streams: Course, box: Box, exercise_of: Callable[[str], Exercise]) -> Graded:
    """As `graded`, without a diagnosis."""
    return _judged_by(Judge(streams, box, Settings(secret=b"secret", lines=False, diagnoses=False)), exercise_of)


@pytest.fixture(scope="session")
def graded(streams: Course, box: Box, exercise_of: Callable[[str], Exercise]) -> Graded:
    """The result of an attempt's text."""
    return _judged_by(Judge(streams, box, Settings(secret=b"secret", lines=False)), exercise_of)


def _judged_by(judge: Judge, exercise_of: Callable[[str], Exercise]) -> Graded:
    def grade(exercise: str, text: str) -> ExerciseResult:
        found = exercise_of(exercise)
        return judge.grade_attempt("student", found, AttemptSource(f"{found.stem}.py", text))

    return grade
