"""From what was found to what counts: each rule changes what it says, tells before and after, and leaves the finding alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from manyheads.course.decisions import Decisions
from manyheads.course.final import final, of_the_absent
from manyheads.report.adjustments import changed, own, sentences, told
from manyheads.result import Result, with_total

from .conftest import result

Decide = Callable[..., Decisions]
DUE = "2026-12-01T17:00Z"  # 18:00 in Berlin


@pytest.mark.parametrize(
    ("handed_in", "score", "says"),
    [
        pytest.param("2026-12-01T17:00Z", 9, "", id="on the minute"),
        pytest.param("2026-12-01T17:30Z", 9, "", id="within the grace"),
        pytest.param("2026-12-01T17:30:01Z", 8.1, "30 minutes 1 second after 18:00: 1 day late, −10% (10% a day, at most 50%) (9 → 8.1)", id="after the grace"),
        pytest.param("2026-12-02T17:00Z", 8.1, "1 day after 18:00: 1 day late, −10% (10% a day, at most 50%) (9 → 8.1)", id="a day to the second"),
        pytest.param("2026-12-02T17:00:01Z", 7.2, "1 day 1 second after 18:00: 2 days late, −20% (10% a day, at most 50%) (9 → 7.2)", id="a second day has begun"),
        pytest.param("2027-02-01T00:00Z", 4.5, "61 days 7 hours after 18:00: 62 days late, −50% (10% a day, at most 50%) (9 → 4.5)", id="at most"),
    ],
)  # fmt: skip
def test_each_day_that_has_begun_costs_its_share(decide: Decide, handed_in: str, score: float, says: str) -> None:
    counted = final(result(handed_in=handed_in), decide())
    assert counted.score == score
    assert [said.removeprefix("averages: ") for said in sentences(counted)] == ([says] if says else [])
    assert sum(each.score for each in counted.exercises) == pytest.approx(score)


@pytest.mark.parametrize(("late", "words"), [
    (False, "handed in at an unknown time: not counted as late"),
    (True, "Canvas says late, and not by how much: nothing is taken off"),
])  # fmt: skip
def test_an_unknown_time_is_said_and_costs_nothing(decide: Decide, late: bool, words: str) -> None:
    counted = final(result(late=late), decide())
    assert (counted.score, [each.words for each in counted.adjustments]) == (9, [words])


def test_who_is_late_by_the_platforms_word_is_named_beside_what_is_decided(decide: Decide) -> None:
    """Of those whom no time is known of there may be as many as students; these few an instructor wants to see."""
    assert list(sentences(final(result(late=True), decide()))) == [
        "averages: Canvas says late, and not by how much: nothing is taken off"
    ]
    assert not list(sentences(final(result(), decide())))


LATE = result(handed_in="2026-12-03T12:00Z")
HOW = "1 day 19 hours after 18:00: 2 days late"


@pytest.mark.parametrize(
    ("row", "score", "most", "says"),
    [
        pytest.param("student: ada, assignment: averages, due: 2026-12-03 18:00, by: Dr. X, comment: ill", 9, 10,
                     ["averages: extension until 2026-12-03 18:00 Europe/Berlin by Dr. X: ill"], id="an extension"),
        pytest.param("student: ada, assignment: averages, due: 2026-12-02T12:00:00Z", 8.1, 10,
                     ["averages: extension until 2026-12-02 13:00 Europe/Berlin",
                      "averages: 1 day after 13:00: 1 day late, −10% (10% a day, at most 50%) (9 → 8.1)"], id="an extension that ends, too"),
        pytest.param("student: ada, exercise: mean, score: 4, by: Dr. X, comment: a right idea", 8.8, 10,
                     [f"averages: {HOW}, −20% (10% a day, at most 50%) (10 → 8.8)",
                      "mean: score set to 4 by Dr. X: a right idea (3 → 4)"], id="an exercise's score is the score"),
        pytest.param("student: ada, exercise: mean, excused: true, comment: ill", 4.8, 6,
                     [f"averages: {HOW}, −20% (10% a day, at most 50%) (6 → 4.8)",
                      "mean: excused: counts for nothing: ill (2.4 → 0)"], id="an exercise is excused"),
        pytest.param("student: ada, assignment: averages, excused: true", 0, 0,
                     ["averages: excused: counts for nothing (7.2 → 0)",
                      f"averages: {HOW}"], id="everything is excused"),
        pytest.param("student: bela, exercise: mean, score: 4", 7.2, 10,
                     [f"averages: {HOW}, −20% (10% a day, at most 50%) (9 → 7.2)"], id="somebody else's"),
    ],
)  # fmt: skip
def test_a_row_changes_what_it_says(decide: Decide, row: str, score: float, most: float, says: list[str]) -> None:
    counted = final(LATE, decide(f"- {{{row}}}\n"))
    assert (counted.score, counted.max_score) == (score, most)
    assert [said for said in sentences(counted) if said] == says


def test_what_is_not_decided_about_is_the_same_object(decide: Decide) -> None:
    other = result().model_copy(update={"assignment": "spread"})
    assert final(other, decide()) is other


def test_what_was_found_stays_beside_what_counts(decide: Decide) -> None:
    counted = final(LATE, decide("- {student: ada, exercise: mean, score: 4}\n"))
    assert (counted.exercises[0].score, counted.exercises[0].checks) == (4, LATE.exercises[0].checks)
    assert LATE.exercises[0].score == 3


def test_who_handed_in_nothing_gets_what_is_decided_and_nobody_else(decide: Decide) -> None:
    known = decide(
        "- {student: bela, exercise: mean, score: 3}\n- {student: chen, assignment: averages, excused: true}\n"
    )
    bela, chen = of_the_absent(result(), known, ["bela", "chen", "dara"])
    assert (bela.student, bela.score, bela.max_score) == ("bela", 3, 10)
    assert {check.outcome for each in bela.exercises for check in each.checks} == {"missing"}
    assert (chen.student, chen.is_excused, chen.max_score) == ("chen", True, 0)


def test_where_an_assignment_has_the_same_points_for_everybody_the_rest_stands_for_the_whole(decide: Decide) -> None:
    counted = final(result(handed_in=DUE), decide("- {student: ada, exercise: median, excused: true}\n"))
    assert (counted.score, counted.max_score, counted.possible, counted.scaled_score) == (3, 4, 10, 7.5)


def test_without_a_policy_being_late_is_said_and_costs_nothing(course, decide: Decide) -> None:  # type: ignore[no-untyped-def]
    text = (course / "course.yaml").read_text().replace("late: {grace: 30 min, per_day: 10%, at_most: 50%}\n", "")
    (course / "course.yaml").write_text(text)
    counted = final(LATE, decide())
    assert (counted.score, list(sentences(counted))) == (9, [f"averages: {HOW}"])


@pytest.mark.parametrize(
    ("rows", "score", "parts", "says"),
    [
        pytest.param("", 5, [2, 3], ["averages: total set to 5 by Dr. X: orally (9 → 5)"], id="alone, late or not"),
        pytest.param("- {student: ada, exercise: mean, score: 1}\n", 5, [2, 3],
                     ["averages: total set to 5 by Dr. X: orally (9 → 5)", "mean: score set to 1 (3 → 1)"], id="beside an exercise's"),
    ],
)  # fmt: skip
def test_a_row_without_an_exercise_sets_the_total_which_exercises_share_by_their_points(
    decide: Decide, rows: str, score: float, parts: list[float], says: list[str]
) -> None:
    known = decide(f"{rows}- {{student: ada, assignment: averages, score: 5, by: Dr. X, comment: orally}}\n")
    counted = final(LATE, known)
    assert (counted.score, [each.score for each in counted.exercises]) == (score, parts)
    assert list(sentences(counted)) == says


def test_each_share_of_a_total_is_marked_and_says_what_it_is(decide: Decide) -> None:
    counted = final(LATE, decide("- {student: ada, assignment: averages, score: 5}\n"))
    shares = [[told(each) for each in own(exercise, counted)] for exercise in counted.exercises]
    assert shares == [["its share of the total (3 → 2)"], ["its share of the total (6 → 3)"]]
    assert all(map(changed, counted.exercises))


def test_a_late_hand_in_with_nothing_to_take_from_says_no_share(decide: Decide) -> None:
    rows = "".join(f"- {{student: ada, exercise: {each}, score: 1}}\n" for each in ("mean", "median"))
    counted = final(LATE, decide(rows))
    assert (counted.score, next(sentences(counted))) == (2, f"averages: {HOW}")


def ungraded(handed_in: str = DUE) -> Result:
    """6 of 6, and one exercise of 4 whose check `values` could not be run; `shape` gave 1."""
    found = result(handed_in=handed_in)
    mean, median = found.exercises
    values = mean.checks[1].model_copy(update={"outcome": "skipped", "score": 0.0})
    return with_total(found, (mean.model_copy(update={"score": None, "checks": (mean.checks[0], values)}), median))


def scores(counted: Result) -> tuple[float | None, ...]:
    return (counted.score, *(each.score for each in counted.exercises))


def test_nothing_decided_leaves_it_without_points_and_without_a_total(decide: Decide) -> None:
    assert scores(final(ungraded(), decide(""))) == (None, None, 6)


def test_being_late_costs_what_there_is_and_makes_no_total(decide: Decide) -> None:
    counted = final(ungraded("2026-12-03T12:00Z"), decide(""))
    assert scores(counted) == (None, None, 4.8)
    assert [(each.words, each.before, each.after) for each in counted.adjustments] == [
        (f"{HOW}, −20% (10% a day, at most 50%)", 0, 0)
    ]


@pytest.mark.parametrize(("row", "found"), [
    pytest.param("exercise: mean, score: 3", (9, 3, 6), id="a score by hand gives it points"),
    pytest.param("exercise: mean, excused: true", (6, None, 6), id="an excuse leaves a total of the rest"),
    pytest.param("assignment: averages, excused: true", (0, None, 6), id="an excuse for all of it"),
])  # fmt: skip
def test_a_decision(decide: Decide, row: str, found: tuple[float | None, ...]) -> None:
    counted = final(ungraded(), decide(f"- {{student: ada, {row}}}\n"))
    assert scores(counted) == found
    assert all(
        0 not in (each.before, each.after) or each.before == each.after for each in counted.exercises[0].adjustments
    )
