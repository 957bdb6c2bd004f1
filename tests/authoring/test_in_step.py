"""What the repository holds is what this processor records: recording, heads, tables. `make processors` imitates others."""

import pytest

from manyheads.authoring.release_exercises import released_files
from manyheads.course import Course, load_course
from manyheads.diagnosis.recording_file import current
from manyheads.judge.run_checks import Catalogue
from tests.make import REPOSITORY

pytestmark = pytest.mark.recorded

EVERY = [exercise.id for exercise in load_course(REPOSITORY).assignments[0].exercises]
QUICKLY_RECORDED = ["attention_scores", "causal_mask", "reshape_dance"]  # the others are `course verify`'s

IN_THE_SUITE = "reshape_dance"  # the others take three times as long, and every table is held below


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(REPOSITORY)


@pytest.fixture(scope="module")
def checks(course: Course) -> Catalogue:
    return Catalogue(course)


@pytest.mark.parametrize(
    "id_", [pytest.param(id_, marks=[] if id_ == IN_THE_SUITE else pytest.mark.soak) for id_ in QUICKLY_RECORDED]
)
def test_every_file_that_a_release_writes_is_in_step(course: Course, checks: Catalogue, id_: str) -> None:
    exercise = next(e for e in course.exercises if e.id == id_)
    files = list(released_files(course, checks, [exercise]))
    assert [file.path.name for file in files if not file.is_in_step()] == []


@pytest.mark.parametrize("id_", EVERY)
def test_every_recording_is_current(course: Course, id_: str) -> None:
    assert current(next(e for e in course.exercises if e.id == id_)) is not None
