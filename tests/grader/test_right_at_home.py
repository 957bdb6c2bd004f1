"""Every right attempt passes `course check`: what a student sees at home is no stricter than what grades."""

import pytest

from manyheads.box.level import Box
from manyheads.course import Course, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.student.check_attempt import check_source
from manyheads.submission import AttemptSource
from tests.make import REPOSITORY

pytestmark = pytest.mark.journey  # some two hundred attempts

COURSE = load_course(REPOSITORY)
EXERCISES = [exercise for assignment in COURSE.assignments for exercise in assignment.exercises]


@pytest.fixture(scope="module")
def course() -> Course:
    return COURSE


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_every_right_attempt_passes_at_home(exercise, course: Course, box: Box) -> None:
    recording, limits = read(exercise.fingerprints), course.limits.for_worker()
    failed = {}
    for path in (exercise.solution, *exercise.right_attempts()):
        source = AttemptSource(path.name, path.read_text(encoding="utf-8"))
        result = check_source(recording, source, box, limits)
        if wrong := [f"{c.id}: {c.evidence}" for c in result.checks if c.outcome != "passed"]:
            failed[path.name] = wrong
    assert not failed
