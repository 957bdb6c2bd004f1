"""What `course init` and `course new` write. What becomes of it is in test_installed_wheel.py."""

from pathlib import Path

import pytest

from manyheads.authoring.new_course import init_course, new_exercise
from manyheads.authoring.templates import HERE
from manyheads.course import CourseError, load_course
from tests.make import TINY, cases

pytestmark = pytest.mark.journey


def sources(folder: Path) -> dict[str, bytes]:
    """What an author writes of a course."""
    files = (path for name in ("solutions", "grader") for path in (folder / name).rglob("*"))
    paths = [p for p in files if p.is_file() and not {"__pycache__", "tables"} & set(p.parts)]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in (folder / "course.yaml", *paths)
    }


def test_the_course_that_these_tests_use_is_the_one_that_init_makes():
    assert sources(TINY) == sources(HERE / "course")


@pytest.mark.parametrize("there", ["a file", "its course"])
def test_a_folder_that_holds_something_is_left_alone(tmp_path, there):
    (tmp_path / there).write_text("mine")
    says = r"is not empty: nothing is written\. Next: course init with a new folder's name"
    with pytest.raises(CourseError, match=says):
        init_course(tmp_path, "T")
    assert [path.name for path in tmp_path.iterdir()] == [there]


def test_a_new_exercise_says_what_to_fill_and_then_keeps_every_promise(run_course, tiny_copy):
    created = run_course("new", "sums/scaled", cwd=tiny_copy)
    assert (created.returncode, created.stderr) == (0, "")
    assert created.stdout.endswith(
        "\nFill what says FILL: there.\nNext: course release scaled && course verify scaled\n"
    )
    run_course("release", cwd=tiny_copy)
    unfilled = run_course("verify", "scaled", cwd=tiny_copy)
    assert unfilled.returncode == 1
    assert "solutions/sums/01_scaled.py:4 says: FILL: the lesson" in unfilled.stdout
    for path in (*tiny_copy.rglob("*.py"), *tiny_copy.rglob("*.yaml")):
        path.write_text(path.read_text().replace("FILL:", "Written."))
    run_course("release", cwd=tiny_copy)
    filled = run_course("verify", "--seeds", "1", "--pairs", "1", cwd=tiny_copy)
    assert (filled.returncode, filled.stderr) == (0, ""), filled.stdout


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param(
            "averages",
            (
                "averages is an assignment: what is the exercise called? Next: course new "
                "averages/NAME"
            ),
            id="no exercise",
        ),
        pytest.param(
            "scaled",
            "'scaled' names no assignment. Next: course new averages/scaled",
            id="no assignment",
        ),
        pytest.param(
            "averages/Scaled",
            (
                "'Scaled' is not an id: use lower case letters, digits and underscores. Next: "
                "course new averages/scaled"
            ),
            id="no id",
        ),
        pytest.param(
            "more averages/my-mean",
            "'more averages' is not an id: use lower case letters, digits and underscores. "
            "Next: course new more_averages/my_mean",
            id="blanks and dashes",
        ),
        pytest.param(
            "averages/Übergröße",
            "Next: course new averages/ubergrosse",
            id="letters that English does not have",
        ),
        pytest.param(
            "averages/2",
            (
                "'2' is not an id: use lower case letters, digits and underscores. Next: course "
                "new averages/median"
            ),
            id="a number",
        ),
        *(
            pytest.param(
                f"averages/{word}", f"no function can be called {word} here", id=f"the name {word}"
            )
            for word in ("class", "print", "torch", "draw")
        ),
        pytest.param(
            "averages/running_mean",
            "the exercise running_mean exists already",
            id="one that is there",
        ),
    ],
)
def test_what_cannot_be_added_is_refused_in_one_sentence(run_course, tiny_copy, name, says):
    original = sources(tiny_copy)
    completed = run_course("new", name, cwd=tiny_copy)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert says in completed.stderr
    assert sources(tiny_copy) == original


@cases(
    "name, first",
    {
        "a slip of the pen": ("avrages/scaled", "avrages is a new assignment, beside averages"),
        "one that is there": ("averages/scaled", "solutions/averages/02_scaled.py"),
    },
)
def test_an_assignment_that_was_not_there_is_told(run_course, tiny_copy, name, first):
    completed = run_course("new", name, cwd=tiny_copy)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines()[0] == first


def test_an_assignment_that_cannot_be_replaced_stays_and_nothing_is_written(run_course, tiny_copy):
    (tiny_copy / "grader" / "misconceptions" / "running_mean.py").write_text("MUTANTS = 1\n")
    original = sources(tiny_copy)
    completed = run_course("new", "basics/scaled", "--instead", "averages", cwd=tiny_copy)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert "needs a tuple MUTANTS" in completed.stderr
    assert sources(tiny_copy) == original


def test_an_assignment_without_texts_can_be_replaced(tiny_copy):
    (tiny_copy / "grader" / "misconceptions" / "running_mean.py").unlink()
    course = load_course(tiny_copy)
    course.texts.write_text("")
    new_exercise(course, "basics", "scaled", replaced=course.assignments[0])
    assert course.texts.read_text().startswith("scaled_unchanged:")
    assert not course.assignments[0].exercises_folder.exists()


def test_remarks_in_course_yaml_stay_where_they_are(run_course, tiny_copy):
    path = tiny_copy / "course.yaml"
    text = path.read_text().replace("limits:", "# how long\nlimits:") + "\n# the end\n"
    path.write_text(text)
    assert run_course("new", "averages/scaled", cwd=tiny_copy).returncode == 0
    changed = path.read_text()
    row = changed[changed.index("      - id: scaled") : changed.index("\n# the end")]
    assert changed.replace(row, "") == text
