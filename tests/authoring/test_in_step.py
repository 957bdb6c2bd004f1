"""What the repository holds is what this processor records: one exercise, and by `make soak` two more; the index knows all."""

import pytest

from manyheads.authoring.workers import made_anew
from manyheads.course import Exercise, load_course
from manyheads.diagnosis.recording_file import current
from manyheads.judge.run_checks import Catalogue
from tests.make import REPOSITORY

pytestmark = pytest.mark.recorded

COURSE = load_course(REPOSITORY)
RECORDED = {"reshape_dance": [], "attention_scores": pytest.mark.soak, "causal_mask": pytest.mark.soak}


@pytest.mark.parametrize("id_", [pytest.param(id_, marks=marks) for id_, marks in RECORDED.items()])
def test_every_file_that_a_release_writes_is_in_step(id_: str) -> None:
    files = made_anew(Catalogue(COURSE), next(e for e in COURSE.exercises if e.id == id_))
    assert [file.path.name for file in files if not file.is_in_step()] == []


@pytest.mark.parametrize("exercise", COURSE.exercises, ids=lambda exercise: exercise.id)
def test_every_recording_is_current(exercise: Exercise) -> None:
    assert current(exercise) is not None
