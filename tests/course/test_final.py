"""From what was found to what counts: each rule changes what it says, tells before and after, and leaves the finding alone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course.decisions import Decisions, final, of_the_absent
from manyheads.report.class_view import sentences
from manyheads.report.words import own, told
from manyheads.result import Result, with_total

from .conftest import result

Decide = Callable[..., Decisions]
DUE, SECOND_DAY = "2026-12-01T17:00Z", "2026-12-03T12:00Z"  # 18:00 in Berlin
HOW, TEN = "1 day 19 hours after 18:00: 2 days late", "−10% (10% a day, at most 50%)"
TWENTY = TEN.replace("−10", "−20")
MEAN, ALL = "exercise: mean, ", "assignment: averages, "
TOTAL = ALL + "score: 5, by: Dr. X, comment: orally"


@pytest.mark.parametrize(("handed_in", "rows", "points", "most", "says"), [
    pytest.param(DUE, [], (9, 3, 6), 10, [], id="on the minute"),
    pytest.param("2026-12-01T17:30Z", [], (9, 3, 6), 10, [], id="within the grace"),
    pytest.param("2026-12-01T17:30:01Z", [], (8.1, 2.7, 5.4), 10,
                 [f"averages: 30 minutes 1 second after 18:00: 1 day late, {TEN} (9 → 8.1)"], id="after the grace"),
    pytest.param("2026-12-02T17:00Z", [], (8.1, 2.7, 5.4), 10,
                 [f"averages: 1 day after 18:00: 1 day late, {TEN} (9 → 8.1)"], id="a day to the second"),
    pytest.param("2026-12-02T17:00:01Z", [], (7.2, 2.4, 4.8), 10,
                 [f"averages: 1 day 1 second after 18:00: 2 days late, {TWENTY} (9 → 7.2)"], id="a second day has begun"),
    pytest.param("2027-02-01T00:00Z", [], (4.5, 1.5, 3), 10,
                 ["averages: 61 days 7 hours after 18:00: 62 days late, −50% (10% a day, at most 50%) (9 → 4.5)"], id="at most"),
    pytest.param(SECOND_DAY, [ALL + "due: 2026-12-03 18:00, by: Dr. X, comment: ill"], (9, 3, 6), 10,
                 ["averages: extension until 2026-12-03 18:00 Europe/Berlin by Dr. X: ill"], id="an extension"),
    pytest.param(SECOND_DAY, [ALL + "due: 2026-12-02T12:00:00Z"], (8.1, 2.7, 5.4), 10,
                 ["averages: extension until 2026-12-02 13:00 Europe/Berlin",
                  f"averages: 1 day after 13:00: 1 day late, {TEN} (9 → 8.1)"], id="an extension that ends, too"),
    pytest.param(SECOND_DAY, [MEAN + "score: 4, by: Dr. X, comment: a right idea"], (8.8, 4, 4.8), 10,
                 [f"averages: {HOW}, {TWENTY} (10 → 8.8)", "mean: score set to 4 by Dr. X: a right idea (3 → 4)"], id="a score is the score"),
    pytest.param(SECOND_DAY, [MEAN + "excused: true, comment: ill"], (4.8, 2.4, 4.8), 6,
                 [f"averages: {HOW}, {TWENTY} (6 → 4.8)", "mean: excused: counts for nothing: ill (2.4 → 0)"], id="an exercise is excused"),
    pytest.param(SECOND_DAY, [ALL + "excused: true"], (0, 2.4, 4.8), 0,
                 ["averages: excused: counts for nothing (7.2 → 0)", f"averages: {HOW}"], id="everything is excused"),
    pytest.param(SECOND_DAY, ["exercise: mean, score: 4, student: bela"], (7.2, 2.4, 4.8), 10,
                 [f"averages: {HOW}, {TWENTY} (9 → 7.2)"], id="somebody else's"),
    pytest.param(SECOND_DAY, [TOTAL], (5, 2, 3), 10,
                 ["averages: total set to 5 by Dr. X: orally (9 → 5)"], id="a total, late or not, is shared by the points"),
    pytest.param(SECOND_DAY, [MEAN + "score: 1", TOTAL], (5, 2, 3), 10,
                 ["averages: total set to 5 by Dr. X: orally (9 → 5)", "mean: score set to 1 (3 → 1)"], id="a total beside an exercise's score"),
    pytest.param(SECOND_DAY, [MEAN + "score: 1", "exercise: median, score: 1"], (2, 1, 1), 10,
                 [f"averages: {HOW}", "mean: score set to 1 (3 → 1)", "median: score set to 1 (6 → 1)"], id="nothing to take from"),
])  # fmt: skip
def test_what_counts(decide, handed_in, rows, points, most, says):
    found, decided = result(handed_in=handed_in), ("" if "student" in row else "student: ada, " for row in rows)
    counted = final(found, decide("".join(f"- {{{who}{row}}}\n" for who, row in zip(decided, rows, strict=True))))
    assert (counted.score, *(each.score for each in counted.exercises)) == points
    assert (counted.max_score, list(sentences(counted))) == (most, says)
    assert [each.checks for each in counted.exercises] == [each.checks for each in found.exercises]
    assert (found.score, found.exercises[0].score) == (9, 3)


@pytest.mark.parametrize(("late", "words", "named"), [
    (False, "handed in at an unknown time: not counted as late", 0),  # of these there may be as many as students
    (True, "Canvas says late, and not by how much: nothing is taken off", 1),  # these few an instructor wants to see
])  # fmt: skip
def test_an_unknown_time_is_said_and_costs_nothing(decide: Decide, late: bool, words: str, named: int) -> None:
    counted = final(result(late=late), decide())
    assert (counted.score, [each.words for each in counted.adjustments]) == (9, [words])
    assert list(sentences(counted)) == [f"averages: {words}"] * named


def test_what_is_not_decided_about_is_the_same_object(decide: Decide) -> None:
    other = result().model_copy(update={"assignment": "spread"})
    assert final(other, decide()) is other


def test_who_handed_in_nothing_gets_what_is_decided_and_nobody_else(decide: Decide) -> None:
    of_bela, of_chen = "student: bela, exercise: mean, score: 3", "student: chen, assignment: averages, excused: true"
    known = decide(f"- {{{of_bela}}}\n- {{{of_chen}}}\n")
    bela, chen = of_the_absent(result(), known, ["bela", "chen", "dara"])
    assert (bela.student, bela.score, bela.max_score) == ("bela", 3, 10)
    assert {check.outcome for each in bela.exercises for check in each.checks} == {"missing"}
    assert (chen.student, chen.is_excused, chen.max_score) == ("chen", True, 0)


def test_where_an_assignment_has_the_same_points_for_everybody_the_rest_stands_for_the_whole(decide: Decide) -> None:
    counted = final(result(handed_in=DUE), decide("- {student: ada, exercise: median, excused: true}\n"))
    assert (counted.score, counted.max_score, counted.possible, counted.scaled_score) == (3, 4, 10, 7.5)


def test_without_a_policy_being_late_is_said_and_costs_nothing(course: Path, decide: Decide) -> None:
    text = (course / "course.yaml").read_text().replace("late: {grace: 30 min, per_day: 10%, at_most: 50%}\n", "")
    (course / "course.yaml").write_text(text)
    counted = final(result(handed_in=SECOND_DAY), decide())
    assert (counted.score, list(sentences(counted))) == (9, [f"averages: {HOW}"])


def test_one_row_comments_all_who_answer_alike_and_changes_no_points(decide: Decide) -> None:
    found = result(handed_in=DUE)
    mean = found.exercises[0].model_copy(update={"answers": "3f2a"})
    alike = found.model_copy(update={"exercises": (mean, *found.exercises[1:])})
    known = decide("- {answers: 3f2a, exercise: mean, by: Dr. X, comment: Which sum is it.}\n")
    assert list(sentences(final(alike, known))) == ["mean: comment by Dr. X: Which sum is it."]
    assert [each.rule for each in final(alike, known).exercises[0].adjustments] == ["comment"]
    assert (final(alike, known).score, final(found, known), known.of_nobody((), ("averages",))) == (9, found, [])


def test_each_share_of_a_total_is_marked_and_says_what_it_is(decide: Decide) -> None:
    counted = final(result(handed_in=SECOND_DAY), decide(f"- {{student: ada, {TOTAL}}}\n"))
    shares = [[told(each) for each in own(exercise, counted)] for exercise in counted.exercises]
    assert shares == [["its share of the total (3 → 2)"], ["its share of the total (6 → 3)"]]


@pytest.mark.parametrize(("handed_in", "row", "points", "words"), [
    pytest.param(DUE, "", (None, None, 6), [], id="nothing decided leaves it without points and without a total"),
    pytest.param(SECOND_DAY, "", (None, None, 4.8), [f"{HOW}, {TWENTY}"], id="being late costs what there is and makes no total"),
    pytest.param(DUE, MEAN + "score: 3", (9, 3, 6), [], id="a score by hand gives it points"),
    pytest.param(DUE, MEAN + "excused: true", (6, None, 6), [], id="an excuse leaves a total of the rest"),
    pytest.param(DUE, ALL + "excused: true", (0, None, 6), ["excused: counts for nothing"], id="an excuse for all of it"),
])  # fmt: skip
def test_an_exercise_that_is_not_graded(decide, handed_in, row, points, words):
    """6 of 6, and one exercise of 4 whose check `values` could not be run; `shape` gave 1."""
    found = result(handed_in=handed_in)
    mean, median = found.exercises
    values = mean.checks[1].model_copy(update={"outcome": "skipped", "score": 0.0})
    mean = mean.model_copy(update={"score": None, "checks": (mean.checks[0], values)})
    ungraded: Result = with_total(found, (mean, median))
    counted = final(ungraded, decide(f"- {{student: ada, {row}}}\n" if row else ""))
    assert (counted.score, *(each.score for each in counted.exercises)) == points
    assert [each.words for each in counted.adjustments] == words
    assert all(0 not in (a.before, a.after) or a.before == a.after for a in counted.exercises[0].adjustments)
