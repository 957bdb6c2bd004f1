"""What is in the key of an attempt: all that its result depends on, and nothing of another
exercise.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from manyheads.box.level_and_device_names import Level
from manyheads.course import load_course
from manyheads.judge.judge_process import GradePlan
from manyheads.judge.results_folder import Keys, graded_from
from manyheads.result import Diagnosed
from manyheads.submission import Submission
from tests import make

SECRET = b"secret"
NAMED = Diagnosed(id="no_division", title="?", hint="?", alternatives=("by_two",))
DIAGNOSED = make.exercise("mean", score=0, max_score=4, diagnosis=(NAMED,))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course of two assignments, whose exercises share a neighbour in part."""
    ids = {"averages": ("mean", "median"), "sums": ("total",)}
    rows = [{"id": id_, "title": id_.title(), "exercises": [*map(row, ids[id_])]} for id_ in ids]
    (tmp_path / "course.yaml").write_text(yaml.safe_dump({"title": "Numbers", "assignments": rows}))
    for path in (
        "solutions/averages/01_mean.py",
        "solutions/averages/02_median.py",
        "solutions/sums/01_total.py",
        "exercises/averages/01_mean.py",
        "exercises/averages/02_median.py",
        "exercises/sums/01_total.py",
        "grader/checks/test_median.py",
        "grader/checks/test_total.py",
        "grader/checks/_sizes.py",
        "grader/misconceptions/mean.py",
        "grader/misconceptions/median.py",
        "grader/misconceptions/total.py",
        "exercises/averages/fingerprints/01_mean.safetensors",
        "grader/right/mean/loop.py",
    ):
        write(tmp_path / path, "import torch\n")
    write(tmp_path / "grader/checks/test_mean.py", "import torch\nfrom ._sizes import SIZES\n")
    write(
        tmp_path / "grader/texts.yaml",
        "no_division: {title: A}\nby_two: {title: B}\nother: {title: C}\n",
    )
    write(tmp_path / "submitted/ada/averages/01_mean.py", "def mean(x): ...\n")
    return tmp_path


def row(id_: str) -> dict[str, object]:
    return {"id": id_, "title": id_, "points": 4, "hint": "?"}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def keys(root: Path, plan: GradePlan | None = None) -> dict[str, str]:
    """The key of each exercise's attempt; that of the first with its result, which names two
    misconceptions.
    """
    course = load_course(root)
    all_keys = Keys(course, plan or GradePlan(SECRET, course=root))
    by_exercise = {}
    for exercise in course.exercises:
        assignment = exercise.assignment
        submission = Submission("ada", assignment, root / "submitted" / "ada" / assignment.id)
        by_exercise[exercise.id] = all_keys.of_attempt(submission, exercise)
        if exercise.id == DIAGNOSED.id:
            by_exercise[exercise.id] = all_keys.of_result(
                by_exercise[exercise.id], exercise, DIAGNOSED
            )
    return by_exercise


def changed_exercises(root: Path, change: Callable[[], object]) -> set[str]:
    """The exercises whose keys a change has changed."""
    before = keys(root)
    assert keys(root) == before
    change()
    after = keys(root)
    return {id_ for id_ in before if after.get(id_) != before[id_]}


@pytest.mark.parametrize(
    ("path", "graded_again"),
    [
        ("grader/checks/test_mean.py", {"mean"}),
        ("grader/checks/_sizes.py", {"mean"}),
        ("grader/checks/test_median.py", {"median"}),
        ("grader/checks/__init__.py", {"mean", "median", "total"}),
        ("grader/misconceptions/mean.py", {"mean"}),
        ("exercises/averages/fingerprints/01_mean.safetensors", {"mean"}),
        ("grader/right/mean/loop.py", {"mean"}),
        ("solutions/averages/01_mean.py", {"mean"}),
        ("solutions/sums/01_total.py", {"total"}),
        ("exercises/averages/01_mean.py", {"mean"}),
        ("submitted/ada/averages/01_mean.py", {"mean"}),
        ("submitted/ada/averages/02_median.ipynb", {"median"}),
        ("submitted/ada/averages/notes.py", set()),
        ("overrides.yaml", set()),
    ],
)
def test_a_file_is_in_the_keys_of_what_depends_on_it(
    course: Path, path: str, graded_again: set[str]
) -> None:
    def change() -> None:
        with (course / path).open("a") as file:
            file.write("# changed\n")

    assert changed_exercises(course, change) == graded_again


@pytest.mark.parametrize(
    ("old", "new", "graded_again"),
    [
        ("no_division: {title: A}", "no_division: {title: Z}", {"mean"}),
        ("by_two: {title: B}", "by_two: {title: Z}", {"mean"}),
        ("other: {title: C}", "other: {title: Z}", set()),
        ("by_two: {title: B}", "by_two: {title: B, overrides: {mean: {title: Z}}}", {"mean"}),
        ("by_two: {title: B}", "by_two: {title: B, overrides: {total: {title: Z}}}", set()),
        ("other:", "new: {title: D}\nother:", set()),
        ("other: {title: C}", "other: {", {"mean"}),
    ],
)
def test_the_words_of_what_a_result_names_are_in_its_key(course, old, new, graded_again):
    path = course / "grader" / "texts.yaml"
    assert (
        changed_exercises(course, lambda: path.write_text(path.read_text().replace(old, new)))
        == graded_again
    )


@pytest.mark.parametrize(
    ("old", "new", "graded_again"),
    [
        ("title: Numbers", "title: Other numbers", set()),
        (
            "title: Averages",
            "title: Other averages\n  due: 2026-12-01 18:00Z\n  late: {per_day: 10%}",
            set(),
        ),
        (
            "title: Numbers",
            "title: Numbers\ntime_zone: UTC\nlate: {per_day: 10%}\nnot_handed_in: zero",
            set(),
        ),
        (
            "title: Numbers",
            "title: Numbers\nlimits: {seconds_per_call: 1}",
            {"mean", "median", "total"},
        ),
    ],
)
def test_dates_and_titles_are_no_reason_to_grade_again(course, old, new, graded_again):
    path = course / "course.yaml"
    assert (
        changed_exercises(course, lambda: path.write_text(path.read_text().replace(old, new)))
        == graded_again
    )


def test_an_exercises_row_and_its_number_are_in_its_key_alone(course: Path) -> None:
    path = course / "course.yaml"

    def edit(change: Callable[[list[dict[str, object]]], object]) -> Callable[[], None]:
        def apply() -> None:
            data = yaml.safe_load(path.read_text())
            change(data["assignments"][0]["exercises"])
            path.write_text(yaml.safe_dump(data))

        return apply

    assert changed_exercises(course, edit(lambda rows: rows[1].update(hint="!"))) == {"median"}
    assert changed_exercises(course, edit(lambda rows: rows[1].update(title="!", why="!"))) == set()
    assert changed_exercises(course, edit(lambda rows: rows.append(row("mode")))) == set()
    # its file is 04_mode now
    assert changed_exercises(course, edit(lambda rows: rows.insert(2, row("middle")))) == {"mode"}


def test_data_beside_the_sources_are_in_every_key(course: Path) -> None:
    data = course / "grader/checks/numbers.txt"
    assert changed_exercises(course, lambda: write(data, "1\n")) == {"mean", "median", "total"}
    assert (
        changed_exercises(
            course, lambda: write(course / "solutions/averages/figures/mean.svg", "<svg/>")
        )
        == set()
    )


def test_how_it_is_graded_is_in_every_key(course: Path) -> None:
    plans = [
        GradePlan(SECRET, course=course),
        GradePlan(b"other", course=course),
        GradePlan(SECRET, course=course, seed=1),
        GradePlan(SECRET, course=course, lines=False),
        GradePlan(SECRET, course=course, level=Level.PROCESS),
    ]
    keys_by_plan = [keys(course, plan) for plan in plans]
    for id_ in ("mean", "median", "total"):
        assert len({plan_keys[id_] for plan_keys in keys_by_plan}) == len(plans), id_
    assert keys(course, GradePlan(SECRET, course=course, exercises=("mean",))) == keys_by_plan[0]


def test_no_exercise_of_the_real_course_reads_files_of_another(repository: Path) -> None:
    exercises = load_course(repository).exercises
    for exercise in exercises:
        other_ids = {e.id for e in exercises} - {exercise.id}
        assert not other_ids.intersection(
            path.stem.removeprefix("test_") for path in graded_from(exercise)
        )
