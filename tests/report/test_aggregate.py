"""What the class page counts of an exercise."""

from manyheads.report.aggregate import NOT_IMPORTED, class_view
from manyheads.report.overview import overviews
from manyheads.result import Diagnosed, Outcome, Result
from manyheads.submission.standing import LOAD_ERROR
from tests import make


def graded(score: float, outcome: Outcome) -> Result:
    check = make.check("split", score, 2, outcome=outcome)
    return make.result("ada", make.exercise("dance", check), assignment="heads")


def test_an_attempt_that_fails_a_check_without_a_name_is_unexplained() -> None:
    assert [view.unexplained for view in class_view([graded(0, "failed")])] == [1]


def test_a_right_attempt_whose_score_a_human_lowered_is_not_wrong() -> None:
    assert [view.unexplained for view in class_view([graded(1, "passed")])] == [0]


def test_who_is_excused_counts_in_no_mean_and_has_no_share() -> None:
    all_right = graded(2, "passed")
    excused = all_right.exercises[0].model_copy(update={"score": 0.0, "excused": True})
    nothing = all_right.model_copy(update={"score": 0.0, "max_score": 0.0, "exercises": (excused,)})
    (overview,) = overviews([all_right, nothing])
    assert (overview.mean, overview.median, dict(overview.totals)["all"]) == (2, 2, 1)


def test_the_mean_is_that_of_the_attempts() -> None:
    (view,) = class_view([graded(2, "passed"), graded(0, "missing")])
    assert (view.attempts, view.mean, sum(view.spread)) == (1, 2, 2)


def test_an_attempt_that_is_counted_in_a_group_is_not_counted_once_more_by_its_checks() -> None:
    broken = graded(0, "error")
    named = Diagnosed(id=LOAD_ERROR, title="It cannot be imported.", hint="")
    exercise = broken.exercises[0].model_copy(update={"diagnosis": (named,)})
    known = named.model_copy(update={"id": "wrong_view"})
    crashed = graded(0, "crashed").exercises[0].model_copy(update={"diagnosis": (known,)})
    (view,) = class_view([broken.model_copy(update={"exercises": (each,)}) for each in (exercise, crashed)])
    assert (view.groups, view.outcomes) == ({NOT_IMPORTED: 1}, {"crashed": 1})
