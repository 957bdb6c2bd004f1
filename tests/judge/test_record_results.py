"""What a run notes beside its results: whose points it changed, what it took over from before, and its seed."""

from pathlib import Path

import pytest

from manyheads.course import Assignment
from manyheads.course.file import AssignmentRow, ExerciseRow
from manyheads.errors import CourseFault
from manyheads.judge import record_results
from manyheads.judge.record_results import finish_changed_points, merged, note_points, read_changed_points, seed_of_run
from manyheads.result import Adjustment, Result
from tests import make


def result_of(student: str = "ada", **scores: float | None) -> Result:
    exercises = [make.exercise(id_, score=score, max_score=9) for id_, score in scores.items()]
    return make.result(student, *exercises, assignment="heads", seed=7)


def test_other_points_are_noted_and_the_same_are_not(tmp_path: Path) -> None:
    note_points(tmp_path, result_of(mask=3, dance=1), result_of(mask=5, dance=1))
    note_points(tmp_path, result_of("ben", mask=3), result_of("ben", mask=3))
    note_points(tmp_path, result_of("cat", mask=3), result_of("cat", mask=None))
    adjusted = {"adjustments": (Adjustment(rule="score", words="5 by hand"),)}
    by_hand = result_of("dan", mask=5).model_copy(update=adjusted)
    note_points(tmp_path, result_of("dan", mask=4), by_hand)
    assert read_changed_points(tmp_path) == [], "the run has not ended"
    changed = [("ada", "heads", 4, 6), ("cat", "heads", 3, None)]
    assert finish_changed_points(tmp_path) == changed
    assert read_changed_points(tmp_path) == changed


def test_an_exercise_that_only_one_of_both_has_changes_nothing(tmp_path: Path) -> None:
    note_points(tmp_path, result_of(mask=3), result_of(mask=3, dance=2))
    assert finish_changed_points(tmp_path) == []


def test_the_next_run_says_its_own(tmp_path: Path) -> None:
    note_points(tmp_path, result_of(mask=3), result_of(mask=5))
    finish_changed_points(tmp_path)
    assert finish_changed_points(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_stopped_and_goes_on_is_one(tmp_path: Path) -> None:
    note_points(tmp_path, result_of(mask=3), result_of(mask=5))
    note_points(tmp_path, result_of("ben", mask=3), result_of("ben", mask=5))
    with (tmp_path / record_results.CHANGING).open("a") as file:
        file.write('\n["cat", "he')  # the power went
    note_points(tmp_path, result_of(mask=5), result_of(mask=4))
    note_points(tmp_path, result_of("ben", mask=5), result_of("ben", mask=3))
    assert finish_changed_points(tmp_path) == [("ada", "heads", 3, 4)], "ben has what he had"


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


NEW = 123_456


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed that is drawn is this one."""
    monkeypatch.setattr(record_results.secrets, "randbelow", lambda below: NEW)


def results(folder: Path, *seeds: object, assignment: str = "sums") -> Path:
    """Results with these seeds."""
    for i, seed in enumerate(seeds):
        path = folder / f"student{i}" / f"{assignment}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"seed": {seed}}}' if seed is not None else "half a fi")
    return folder


@pytest.mark.parametrize(("before", "given", "seed"), [
    pytest.param((), None, NEW, id="a first run draws one"),
    pytest.param((), 0, 0, id="it takes the one that is given, also 0"),
    pytest.param((7, 7), None, 7, id="a run goes on with that of its results"),
    pytest.param((0, 0), None, 0, id="also with 0"),
    pytest.param((3, 7, 7), None, 7, id="of several it takes the most frequent"),
    pytest.param((None, 7), None, 7, id="what is no result has none"),
    pytest.param((7, 7), 3, 3, id="one that is given goes before that of results"),
])  # fmt: skip
def test_a_seed(tmp_path: Path, before: tuple[object, ...], given: int | None, seed: int) -> None:
    assert seed_of_run(results(tmp_path, *before), ["sums"], given, in_part=False) == seed


def test_results_of_another_assignment_are_no_matter(tmp_path: Path) -> None:
    results(tmp_path, 7, assignment="means")
    assert seed_of_run(tmp_path, ["sums"], None, in_part=False) == NEW


@pytest.mark.parametrize("given", [None, 7], ids=["not said", "said"])
def test_where_other_exercises_stay_their_seed_stays(tmp_path: Path, given: int | None) -> None:
    assert seed_of_run(results(tmp_path, 7, 7), ["sums"], given, in_part=True) == 7


@pytest.mark.parametrize(("before", "given"), [((7, 7), 3), ((3, 7), None), ((3, 7), 7)])
def test_where_they_have_another_one_that_is_said(tmp_path: Path, before: tuple[int, ...], given: int | None) -> None:
    with pytest.raises(CourseFault, match=r"states one seed\. Next: "):
        seed_of_run(results(tmp_path, *before), ["sums"], given, in_part=True)


def test_without_results_there_is_nothing_to_keep(tmp_path: Path) -> None:
    assert seed_of_run(tmp_path, ["sums"], None, in_part=True) == NEW
    assert seed_of_run(tmp_path, ["sums"], 3, in_part=True) == 3
