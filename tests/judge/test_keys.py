"""The cache key of a result depends on all that the result depends on, and on nothing else."""

import pytest
import yaml

from manyheads.box.level_and_device_names import Level
from manyheads.course import load_course
from manyheads.judge.judge_process import GradePlan
from manyheads.judge.results_folder import Keys, graded_from
from manyheads.result import Diagnosed
from manyheads.submission import Submission
from tests import make
from tests.make import cases

SECRET = b"secret"
# the result of the first exercise names two misconceptions
NAMED = Diagnosed(id="no_division", title="?", hint="?", alternatives=("by_two",))
DIAGNOSED = make.exercise("mean", score=0, max_score=4, diagnosis=(NAMED,))
ALL = {"mean", "median", "total"}
FILES = """
solutions/averages/01_mean.py solutions/averages/02_median.py solutions/sums/01_total.py
exercises/averages/01_mean.py exercises/averages/02_median.py exercises/sums/01_total.py
exercises/averages/fingerprints/01_mean.safetensors grader/right/mean/loop.py
grader/checks/test_median.py grader/checks/test_total.py grader/checks/_sizes.py
grader/misconceptions/mean.py grader/misconceptions/median.py grader/misconceptions/total.py
"""
TEXTS = "no_division: {title: A}\nby_two: {title: B}\nother: {title: C}\n"


def row(id_):
    """Return the row of an exercise in course.yaml."""
    return {"id": id_, "title": id_, "points": 4, "hint": "?"}


def write_file(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def course_of_two_assignments(tmp_path):
    """A course of two assignments; the checks of one exercise import a file beside them."""
    rows = [
        {"id": "averages", "title": "Averages", "exercises": [row("mean"), row("median")]},
        {"id": "sums", "title": "Sums", "exercises": [row("total")]},
    ]
    write_file(tmp_path / "course.yaml", yaml.safe_dump({"title": "Numbers", "assignments": rows}))
    for path in FILES.split():
        write_file(tmp_path / path, "import torch\n")
    write_file(tmp_path / "grader/checks/test_mean.py", "import torch\nfrom ._sizes import SIZES\n")
    write_file(tmp_path / "grader/texts.yaml", TEXTS)
    write_file(tmp_path / "submitted/ada/averages/01_mean.py", "def mean(x): ...\n")
    return tmp_path


def keys(root, plan=None):
    """Return the key of each exercise that ada hands in; for `mean` the key includes its result."""
    course = load_course(root)
    keys_of_course = Keys(course, plan or GradePlan(SECRET, course=root))
    by_exercise = {}
    for exercise in course.exercises:
        folder = root / "submitted" / "ada" / exercise.assignment.id
        key = keys_of_course.of_attempt(Submission("ada", exercise.assignment, folder), exercise)
        if exercise.id == DIAGNOSED.id:
            key = keys_of_course.of_result(key, exercise, DIAGNOSED)
        by_exercise[exercise.id] = key
    return by_exercise


def changed_keys(root, change, *arguments):
    """Return the exercises whose keys differ after change(*arguments)."""
    before = keys(root)
    assert keys(root) == before
    change(*arguments)
    after = keys(root)
    return {id_ for id_ in before if after.get(id_) != before[id_]}


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("grader/checks/test_mean.py", {"mean"}),
        ("grader/checks/_sizes.py", {"mean"}),
        ("grader/checks/test_median.py", {"median"}),
        ("grader/checks/__init__.py", ALL),
        ("grader/checks/numbers.txt", ALL),
        ("grader/misconceptions/mean.py", {"mean"}),
        ("exercises/averages/fingerprints/01_mean.safetensors", {"mean"}),
        ("grader/right/mean/loop.py", {"mean"}),
        ("solutions/averages/01_mean.py", {"mean"}),
        ("solutions/averages/figures/mean.svg", set()),
        ("solutions/sums/01_total.py", {"total"}),
        ("exercises/averages/01_mean.py", {"mean"}),
        ("submitted/ada/averages/01_mean.py", {"mean"}),
        ("submitted/ada/averages/02_median.ipynb", {"median"}),
        ("submitted/ada/averages/notes.py", set()),
        ("overrides.yaml", set()),
    ],
)
def test_a_changed_file_changes_the_keys_that_depend_on_it(
    course_of_two_assignments, path, changed
):
    def append():
        (course_of_two_assignments / path).parent.mkdir(exist_ok=True)
        with (course_of_two_assignments / path).open("a") as file:
            file.write("# changed\n")

    assert changed_keys(course_of_two_assignments, append) == changed


@cases(
    "edit, changed",
    {
        "the title of a misconception that is named": ("{title: A} → {title: Z}", {"mean"}),
        "the title of an alternative": ("{title: B} → {title: Z}", {"mean"}),
        "the title of another misconception": ("{title: C} → {title: Z}", set()),
        "a title for this exercise": (
            "title: B → title: B, overrides: {mean: {title: Z}}",
            {"mean"},
        ),
        "a title for another exercise": (
            "title: B → title: B, overrides: {total: {title: Z}}",
            set(),
        ),
        "a new misconception": ("other: → new: {title: D}\nother:", set()),
        "texts that cannot be read": ("other: {title: C} → other: {", {"mean"}),
        "the title of the course": ("title: Numbers → title: Other numbers", set()),
        "title and due date of an assignment": (
            "title: Averages → title: Other\n  due: 2026-12-01 18:00Z\n  late: {per_day: 10%}",
            set(),
        ),
        "the rules for late submissions": (
            "title: Numbers → title: Numbers\ntime_zone: UTC\nlate: {per_day: 10%}",
            set(),
        ),
        "the limits": ("title: Numbers → title: Numbers\nlimits: {seconds_per_call: 1}", ALL),
    },
)
def test_an_edit_of_the_course_or_its_texts_changes_the_keys_that_depend_on_it(
    course_of_two_assignments, edit, changed
):
    old, new = edit.split(" → ")
    name = "grader/texts.yaml" if old in TEXTS else "course.yaml"
    assert (
        changed_keys(
            course_of_two_assignments, make.edit(name, old, new), course_of_two_assignments
        )
        == changed
    )


@cases(
    "change, changed",
    {
        "its hint": (lambda rows: rows[1].update(hint="!"), {"median"}),
        "its title": (lambda rows: rows[1].update(title="!", why="!"), set()),
        "another exercise below it": (lambda rows: rows.append(row("mode")), set()),
        "another exercise above it, which changes its file name": (
            lambda rows: rows.insert(1, row("mode")),
            {"median"},
        ),
    },
)
def test_a_row_of_course_yaml_changes_only_the_key_of_its_exercise(
    course_of_two_assignments, change, changed
):
    def edit():
        data = yaml.safe_load((course_of_two_assignments / "course.yaml").read_text())
        change(data["assignments"][0]["exercises"])
        write_file(course_of_two_assignments / "course.yaml", yaml.safe_dump(data))

    assert changed_keys(course_of_two_assignments, edit) == changed


def test_options_of_grading_change_every_key(course_of_two_assignments):
    plans = [
        GradePlan(SECRET, course=course_of_two_assignments),
        GradePlan(b"other", course=course_of_two_assignments),
        GradePlan(SECRET, course=course_of_two_assignments, seed=1),
        GradePlan(SECRET, course=course_of_two_assignments, lines=False),
        GradePlan(SECRET, course=course_of_two_assignments, level=Level.PROCESS),
    ]
    keys_by_plan = [keys(course_of_two_assignments, plan) for plan in plans]
    for id_ in ALL:
        assert len({plan_keys[id_] for plan_keys in keys_by_plan}) == len(plans), id_
    assert (
        keys(
            course_of_two_assignments,
            GradePlan(SECRET, course=course_of_two_assignments, exercises=("mean",)),
        )
        == keys_by_plan[0]
    )


def test_no_exercise_of_the_real_course_reads_files_of_another(repository):
    exercises = load_course(repository).exercises
    for exercise in exercises:
        other_ids = {e.id for e in exercises} - {exercise.id}
        file_ids = {path.stem.removeprefix("test_") for path in graded_from(exercise)}
        assert not other_ids & file_ids
