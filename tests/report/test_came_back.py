"""A misconception that was named in one exercise and is named again in a later one."""

from manyheads.report.aggregate import CameBack, came_back
from manyheads.report.labels import Labels
from manyheads.result import Diagnosed, Result
from manyheads.submission.unwritten import UNTOUCHED
from tests import make

LABELS = Labels({"first": "First", "second": "Second"}, {"a": ("01", "A"), "b": ("02", "B"), "c": ("01", "C")})
TITLE = "You took the softmax over the queries."


def result(student: str, assignment: str, **named: str) -> Result:
    found = {id_: (Diagnosed(id=name, title=TITLE, hint="Look."),) if name else () for id_, name in named.items()}
    exercises = [make.exercise(id_, score=0, max_score=1, diagnosis=diagnosis) for id_, diagnosis in found.items()]
    return make.result(student, *exercises, assignment=assignment)


def test_it_is_counted_by_students_from_the_first_exercise_to_each_later_one() -> None:
    results = [
        result("ada", "second", c="axis"),  # in whichever order results come
        result("ada", "first", a="axis", b=""),
        result("ben", "first", a="axis", b="axis"),
        result("ben", "second", c="axis"),
    ]
    assert came_back(results, LABELS) == [
        CameBack(TITLE, "a", "c", ("ada", "ben")),
        CameBack(TITLE, "a", "b", ("ben",)),
    ]


def test_one_of_another_student_or_another_one_does_not_come_back() -> None:
    results = [result("ada", "first", a="axis", b="scale"), result("ben", "first", b="axis")]
    assert came_back(results, LABELS) == []


def test_an_attempt_that_is_not_begun_is_no_misconception_that_came_back() -> None:
    assert came_back([result("ada", "first", a=UNTOUCHED, b=UNTOUCHED)], LABELS) == []
