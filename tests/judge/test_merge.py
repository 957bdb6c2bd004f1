"""One exercise graded anew, the others as they were."""

from pathlib import Path

import pytest

from manyheads.course import Assignment
from manyheads.course.file import AssignmentRow, ExerciseRow
from manyheads.judge.record_results import merged
from manyheads.result import Result
from tests import make

ROWS = tuple(ExerciseRow(id=id_, title=id_, points=2, hint="?") for id_ in ("one", "two", "old"))
ASSIGNMENT = Assignment(Path("course"), AssignmentRow(id="a", title="A", exercises=ROWS))


def result(isolation: str = "namespaces", **scores: float) -> Result:
    exercises = [make.exercise(id_, make.check("c", score, 2)) for id_, score in scores.items()]
    return make.result("ada", *exercises, assignment="a", isolation=isolation)


def test_the_other_exercises_stay_in_the_courses_order() -> None:
    found = merged(result(two=2), result(one=1, two=0, old=2), ASSIGNMENT)
    assert [(e.id, e.score) for e in found.exercises] == [("one", 1), ("two", 2), ("old", 2)]
    assert (found.score, found.max_score) == (5, 6)


def test_an_exercise_that_the_course_has_no_more_goes() -> None:
    assert [e.id for e in merged(result(two=2), result(gone=1), ASSIGNMENT).exercises] == ["two"]


@pytest.mark.parametrize(
    "before", [pytest.param(None, id="there is none"), pytest.param(result("process", one=2), id="another level")]
)
def test_nothing_is_taken_from_where_nothing_fits(before: Result | None) -> None:
    new = result(two=1)
    assert merged(new, before, ASSIGNMENT) == new
