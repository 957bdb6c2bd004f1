"""The exercise of the course that returns a pair, and is handed back a part of it: kv_cache."""

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.box.level import Box
from manyheads.course import Exercise, load_course
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from manyheads.submission import AttemptSource

Scored = Callable[[str], ExerciseResult]
RETURNED = "return self.proj(y), (k, v)"


@pytest.fixture(scope="session")
def kv_cache(repository: Path) -> Exercise:
    """The exercise."""
    return next(exercise for exercise in load_course(repository).exercises if exercise.id == "kv_cache")


@pytest.fixture(scope="session")
def returning(kv_cache: Exercise) -> Callable[[str], str]:
    """The solution, but for what it returns."""
    solution = kv_cache.solution.read_text(encoding="utf-8")
    assert solution.count(RETURNED) == 1
    return lambda returned: solution.replace(RETURNED, f"return {returned}")


@pytest.fixture(scope="session")
def scored(repository: Path, box: Box, kv_cache: Exercise) -> Scored:
    """The result of an attempt's text, without a diagnosis."""
    judge = Judge(load_course(repository), box, Settings(secret=b"secret", lines=False, diagnoses=False))
    return lambda text: judge.grade_attempt("student", kv_cache, AttemptSource(f"{kv_cache.stem}.py", text))
