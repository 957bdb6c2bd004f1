"""What is said where something is done."""

from pathlib import Path

from manyheads.course import Course
from manyheads.course.file import CourseFile
from manyheads.report.ladder import after_done, following, how_far

TRAIN = {"module": "Heads", "arguments": {"n_embd": "C"}}


def course_with(*changes: dict[str, object]) -> Course:
    """A course with an exercise for each of these."""
    rows = [{"id": f"e{n}", "title": "E", "points": 1, "hint": "h", **each} for n, each in enumerate(changes)]
    file = {"title": "T", "assignments": [{"id": "a", "title": "A", "exercises": rows}]}
    return Course(Path(), CourseFile.model_validate(file))


def test_it_says_why_it_works_and_offers_to_train_as_far_as_the_course_has_that() -> None:
    plain, told, trained = course_with({}, {"why": "Rows sum to 1."}, {"train": TRAIN}).exercises
    asks = "Five questions on your own code: course ask"
    assert after_done(plain) == [f"{asks} e0"]
    assert after_done(told) == ["Why it works: Rows sum to 1.", f"{asks} e1"]
    assert after_done(trained) == ["It can learn to write now, in about a minute: course train e2", f"{asks} e2"]


def test_the_next_one_is_the_first_below_that_is_not_done_and_then_what_was_left_out() -> None:
    course = course_with({}, {}, {}, {})
    first, second, third, fourth = course.exercises
    assert how_far(course, {second, third}) == "2 of 4 done."
    assert following(course, {second, third}, after=second) == fourth
    assert following(course, {second, third, fourth}, after=fourth) == first
    assert following(course, set(course.exercises), after=first) is None
