"""Which misconceptions a class has."""

from manyheads.report.aggregate import Ranked, ranked
from manyheads.result import Diagnosed, ExerciseResult, Result
from tests import make


def named(id_: str, *alternatives: str, title: str = "") -> Diagnosed:
    return Diagnosed(id=id_, title=title or id_, hint="", alternatives=alternatives)


def student(name: str, **exercises: tuple[Diagnosed, ...]) -> Result:
    found = [make.exercise(id_, score=0, max_score=1, diagnosis=named) for id_, named in exercises.items()]
    return make.result(name, *found, assignment="heads")


def attempts_of(results: list[Result]) -> list[tuple[str, ExerciseResult]]:
    return [(result.student, exercise) for result in results for exercise in result.exercises]


def test_more_students_come_first_then_more_attempts() -> None:
    results = [
        student("a", one=(named("rare"),), two=(named("twice"),), three=(named("twice"),)),
        student("b", one=(named("common"),)),
        student("c", one=(named("common"),)),
    ]
    assert [(r.id, r.students, r.attempts) for r in ranked(attempts_of(results))] == [
        ("common", 2, 2),
        ("twice", 1, 2),
        ("rare", 1, 1),
    ]


def test_a_misconception_has_every_wording_and_the_attempts_of_every_exercise() -> None:
    results = [
        student("a", one=(named("scale", title="by √C"),), two=(named("scale", title="by √d"),)),
        student("b", two=(named("scale", title="by √d"),)),
    ]
    (scale,) = ranked(attempts_of(results))
    assert (scale.titles, scale.exercises) == (("by √C", "by √d"), (("one", 1), ("two", 2)))


def test_what_gives_the_same_numbers_and_what_came_along_are_counted_apart() -> None:
    results = [
        student("a", one=(named("view", "mix"),)),
        student("b", one=(named("view", "mix"), named("scale"))),
        student("c", one=(named("view"),)),
    ]
    view, scale = ranked(attempts_of(results))
    assert view == Ranked("view", ("view",), 3, 3, (("one", 3),), (("mix", 2),), (("scale", 1),), ("a", "b", "c"))
    assert (scale.alternatives, scale.together) == ((), (("view", 1),))


def test_a_class_without_diagnoses_has_none() -> None:
    assert ranked(attempts_of([student("a", one=())])) == []
