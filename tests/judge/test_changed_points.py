"""Whose points a run changed: beside the results, until the next run ends."""

from pathlib import Path

from manyheads.judge.record_results import CHANGING, finish_changed_points, note_points, read_changed_points
from manyheads.result import Adjustment, Result
from tests import make


def result(student: str = "ada", **scores: float | None) -> Result:
    exercises = [make.exercise(id_, score=score, max_score=9) for id_, score in scores.items()]
    return make.result(student, *exercises, assignment="heads", seed=7)


def test_other_points_are_noted_and_the_same_are_not(tmp_path: Path) -> None:
    note_points(tmp_path, result(mask=3, dance=1), result(mask=5, dance=1))
    note_points(tmp_path, result("ben", mask=3), result("ben", mask=3))
    note_points(tmp_path, result("cat", mask=3), result("cat", mask=None))
    by_hand = result("dan", mask=5).model_copy(update={"adjustments": (Adjustment(rule="score", words="5 by hand"),)})
    note_points(tmp_path, result("dan", mask=4), by_hand)
    assert read_changed_points(tmp_path) == [], "the run has not ended"
    changed = [("ada", "heads", 4, 6), ("cat", "heads", 3, None)]
    assert finish_changed_points(tmp_path) == changed
    assert read_changed_points(tmp_path) == changed


def test_an_exercise_that_only_one_of_both_has_changes_nothing(tmp_path: Path) -> None:
    note_points(tmp_path, result(mask=3), result(mask=3, dance=2))
    assert finish_changed_points(tmp_path) == []


def test_the_next_run_says_its_own(tmp_path: Path) -> None:
    note_points(tmp_path, result(mask=3), result(mask=5))
    finish_changed_points(tmp_path)
    assert finish_changed_points(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_stopped_and_goes_on_is_one(tmp_path: Path) -> None:
    note_points(tmp_path, result(mask=3), result(mask=5))
    note_points(tmp_path, result("ben", mask=3), result("ben", mask=5))
    with (tmp_path / CHANGING).open("a") as file:
        file.write('\n["cat", "he')  # the power went
    note_points(tmp_path, result(mask=5), result(mask=4))
    note_points(tmp_path, result("ben", mask=5), result("ben", mask=3))
    assert finish_changed_points(tmp_path) == [("ada", "heads", 3, 4)], "ben has what he had"
