"""What the repository holds is what this processor records: fingerprints, heads, tables. `make processors` imitates others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.authoring.release import released_files
from grader.course import Course, load_course
from grader.judge.catalogue import Catalogue

pytestmark = pytest.mark.recorded

REPOSITORY = Path(__file__).parents[2]
EVERY = [exercise.id for exercise in load_course(REPOSITORY).assignments[0].exercises]
QUICKLY_RECORDED = ["attention_scores", "causal_mask", "reshape_dance"]  # the others are `course verify`'s


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(REPOSITORY)


@pytest.fixture(scope="module")
def checks(course: Course) -> Iterator[Catalogue]:
    with Catalogue(course) as opened:
        yield opened


@pytest.mark.parametrize("id_", QUICKLY_RECORDED)
def test_every_file_that_a_release_writes_is_in_step(course: Course, checks: Catalogue, id_: str) -> None:
    assignment = course.assignments[0]
    exercise = next(e for e in assignment.exercises if e.id == id_)
    files = list(released_files(course, checks, [(assignment, exercise)]))
    assert [file.path.name for file in files if not file.is_in_step()] == []


@pytest.mark.parametrize("id_", EVERY)
def test_every_table_is_current(course: Course, checks: Catalogue, id_: str) -> None:
    assignment = course.assignments[0]
    assert checks.tables.is_current(assignment, next(e for e in assignment.exercises if e.id == id_))
