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
# The result of the first exercise reports one misconception, with another one as its alternative.
MISCONCEPTION = Diagnosed(id="no_division", title="?", hint="?", alternatives=("by_two",))
RESULT_OF_MEAN = make.exercise("mean", score=0, max_score=4, diagnosis=(MISCONCEPTION,))
ALL = {"mean", "median", "total"}
FILES = """
solutions/averages/01_mean.py solutions/averages/02_median.py solutions/sums/01_total.py
exercises/averages/01_mean.py exercises/averages/02_median.py exercises/sums/01_total.py
exercises/averages/fingerprints/01_mean.safetensors grader/right/mean/loop.py
grader/checks/test_median.py grader/checks/test_total.py grader/checks/_sizes.py
grader/misconceptions/mean.py grader/misconceptions/median.py grader/misconceptions/total.py
"""
# titles of the misconception that is reported for `mean`, its alternative, and an unreported one
TEXTS = "no_division: {title: Sum}\nby_two: {title: Half}\nunreported: {title: Other}\n"


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
        if exercise.id == RESULT_OF_MEAN.id:
            key = keys_of_course.of_result(key, exercise, RESULT_OF_MEAN)
        by_exercise[exercise.id] = key
    return by_exercise


def changed_keys(root, edit):
    """Return the exercises whose keys differ after an edit of the course in this folder."""
    before = keys(root)
    assert keys(root) == before
    edit(root)
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
    (course_of_two_assignments / path).parent.mkdir(exist_ok=True)
    append_comment = make.add(path, "# changed\n")
    assert changed_keys(course_of_two_assignments, append_comment) == changed


@cases(
    "old, new, changed",
    {
        "the title of the misconception reported for mean": ("title: Sum", "title: New", {"mean"}),
        "the title of its alternative": ("title: Half", "title: New", {"mean"}),
        "the title of a misconception that is not reported": ("title: Other", "title: New", set()),
        "another title of the alternative, for mean only": (
            "title: Half",
            "title: Half, overrides: {mean: {title: New}}",
            {"mean"},
        ),
        "another title of the alternative, for total only": (
            "title: Half",
            "title: Half, overrides: {total: {title: New}}",
            set(),
        ),
        "a new misconception": ("unreported:", "new: {title: New}\nunreported:", set()),
        "invalid YAML": ("{title: Other}", "{", {"mean"}),
    },
)
def test_an_edit_of_texts_changes_the_keys_of_results_that_show_them(
    course_of_two_assignments, old, new, changed
):
    edit = make.edit("grader/texts.yaml", old, new)
    assert changed_keys(course_of_two_assignments, edit) == changed


@cases(
    "old, new, changed",
    {
        "the title of the course": ("title: Numbers", "title: Other numbers", set()),
        "the title, the due date and the late penalty of an assignment": (
            "title: Averages",
            "title: Other\n  due: 2026-12-01 18:00Z\n  late: {per_day: 10%}",
            set(),
        ),
        "the late penalty of the course": (
            "title: Numbers",
            "title: Numbers\ntime_zone: UTC\nlate: {per_day: 10%}",
            set(),
        ),
        "the limits": ("title: Numbers", "title: Numbers\nlimits: {seconds_per_call: 1}", ALL),
    },
)
def test_of_the_courses_settings_only_limits_change_the_keys(
    course_of_two_assignments, old, new, changed
):
    """Titles and late penalties are applied whenever a kept result is shown."""
    edit = make.edit("course.yaml", old, new)
    assert changed_keys(course_of_two_assignments, edit) == changed


@cases(
    "change_rows, changed",
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
    course_of_two_assignments, change_rows, changed
):
    def edit(root):
        data = yaml.safe_load((root / "course.yaml").read_text())
        change_rows(data["assignments"][0]["exercises"])
        write_file(root / "course.yaml", yaml.safe_dump(data))

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
