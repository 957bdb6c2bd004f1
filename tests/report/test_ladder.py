"""The ladder: how far, how many points, and what is left to do in the next exercise."""

from pathlib import Path

from manyheads.course import Course
from manyheads.course.file import CourseFile
from manyheads.report.terminal import ladder
from manyheads.result import ExerciseResult
from manyheads.student.how_far import Rung, after_done, going_on
from tests import make


def course_with(*changes: dict[str, object], assignment: str = "A") -> Course:
    """A course with an exercise for each of these."""
    rows = [{"id": f"e{n}", "title": "E", "points": 1, "hint": "h", **each} for n, each in enumerate(changes)]
    file = {"title": "T", "assignments": [{"id": "a", "title": assignment, "exercises": rows}]}
    return Course(Path(), CourseFile.model_validate(file))


SCORES, MASK, HEADS = course_with(
    {"title": "Scores", "points": 5},
    {"title": "The mask", "points": 4},
    {"title": "Heads", "points": 6},
    assignment="Heads",
).exercises
(TAIL,) = course_with({"title": "A tail", "points": 6}, assignment="Tails").exercises
PASSED, FAILED = make.check("masks", 1), make.check("gives no NaN")
MASKS = [(check.id, check.title) for check in (PASSED, FAILED)]


def started(**changes: object) -> ExerciseResult:
    return make.exercise("e1", PASSED, FAILED, **{"score": 1.5, **changes})


DONE = Rung(SCORES, [("scales", "scales")], make.exercise("e0", make.check("scales", 5, 5)))
STARTED, UNTOUCHED = Rung(MASK, MASKS, started()), Rung(HEADS, [("splits", "splits")])


def text(*rungs: Rung, width: int = 80) -> list[str]:
    return make.printed(ladder(rungs), width)


def test_the_ladder_and_the_checklist_of_the_first_that_is_not_done() -> None:
    assert text(DONE, STARTED, UNTOUCHED) == [
        "Heads",
        "✓  01 Scores      5 / 5  done",
        "…  02 The mask  1.5 / 4  1 of 2 checks",
        "·  03 Heads       – / 6  untouched",
        "1 of 3 done, 6.5 of 15 points by the visible checks",
        "",
        "The checklist of 02 The mask: it …",
        "  ✓ masks",
        "  ☐ gives no NaN",
    ]


def test_each_assignment_has_its_own_list_below_its_title() -> None:
    assert text(DONE, STARTED, Rung(TAIL, []))[:6] == [
        "Heads",
        "✓  01 Scores      5 / 5  done",
        "…  02 The mask  1.5 / 4  1 of 2 checks",
        "Tails",
        "·  01 A tail  – / 6  untouched",
        "1 of 3 done, 6.5 of 15 points by the visible checks",
    ]


def test_a_missing_file_is_what_is_next_and_when_all_is_done_nothing_is() -> None:
    assert "?  03 Heads  – / 6  missing" in text(UNTOUCHED._replace(is_missing=True))
    assert text(DONE) == ["Heads", "✓  01 Scores  5 / 5  done", "1 of 1 done, 5 of 5 points by the visible checks"]


def test_a_narrow_terminal_has_shorter_lines_and_folds_the_checklist_below_itself() -> None:
    long = STARTED._replace(asked=[("past", "lets every token see itself and the past")])
    assert text(DONE, long, width=40) == [
        "Heads",
        "✓  01 Scores      5 / 5  done",
        "…  02 The mask  1.5 / 4  0 of 1 checks",
        "1 of 2 done, 6.5 of 9 points by the",
        "visible checks",
        "",
        "The checklist of 02 The mask: it …",
        "  ☐ lets every token see itself and the",
        "    past",
    ]


def test_what_grading_asks_more_is_no_promise() -> None:
    lines = text(DONE, STARTED._replace(result=started(unseen=0.5)))
    assert lines[2:4] == ["…  02 The mask  1.5 / 4  1 of 2 checks",
                          "1 of 2 done, 6.5 of 9 points by the visible checks; only grading can give 0.5 of"]  # fmt: skip


TRAIN = {"module": "Heads", "arguments": {"n_embd": "C"}}


def test_it_says_why_it_works_and_offers_to_train_as_far_as_the_course_has_that() -> None:
    plain, told, trained = course_with({}, {"why": "Rows sum to 1."}, {"train": TRAIN}).exercises
    asks = "Five questions on your own code: course ask"
    assert after_done(plain) == [f"{asks} e0"]
    assert after_done(told) == ["Why it works: Rows sum to 1.", f"{asks} e1"]
    assert after_done(trained) == ["It can learn to write now: course train e2", f"{asks} e2"]


def test_the_next_one_is_the_first_below_that_is_not_done_and_then_what_was_left_out() -> None:
    course = course_with({}, {}, {}, {})
    first, second, third, fourth = course.exercises
    for done, after, upcoming in (({second, third}, second, fourth), ({second, third, fourth}, fourth, first)):
        assert going_on(course, done, after).endswith(f"/{upcoming.script.name}, then: course check {upcoming.id}")
    assert going_on(course, set(course.exercises), after=first) == "All done."
