"""`course init` and `course new`: the files that they write, and their error messages.

test_installed_wheel.py grades a class with such a course.
"""

from pathlib import Path

import pytest

from manyheads.authoring.new_course import init_course, new_exercise
from manyheads.authoring.templates import HERE
from manyheads.course import CourseError, load_course
from tests.make import TINY, cases

pytestmark = pytest.mark.journey


def sources(folder: Path) -> dict[str, bytes]:
    """Return the files of a course that an author writes."""
    files = (path for name in ("solutions", "grader") for path in (folder / name).rglob("*"))
    paths = [p for p in files if p.is_file() and not {"__pycache__", "tables"} & set(p.parts)]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in (folder / "course.yaml", *paths)
    }


def test_the_tiny_course_of_the_tests_is_the_one_that_init_writes():
    assert sources(TINY) == sources(HERE / "course")


@pytest.mark.parametrize("existing_name", ["a file", "its course"])
def test_init_does_not_write_into_a_folder_that_is_not_empty(tmp_path, existing_name):
    (tmp_path / existing_name).write_text("mine")
    message = r"is not empty: nothing is written\. Next: course init with a new folder's name"
    with pytest.raises(CourseError, match=message):
        init_course(tmp_path, "T")
    assert [path.name for path in tmp_path.iterdir()] == [existing_name]


def test_a_new_exercise_has_placeholders_and_can_be_verified_when_filled(run_course, tiny_copy):
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
    ("name", "message"),
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
def test_an_exercise_that_cannot_be_added_is_refused_with_a_message(
    run_course, tiny_copy, name, message
):
    original = sources(tiny_copy)
    completed = run_course("new", name, cwd=tiny_copy)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert message in completed.stderr
    assert sources(tiny_copy) == original


@cases(
    "name, first_line",
    {
        "a slip of the pen": ("avrages/scaled", "avrages is a new assignment, beside averages"),
        "one that is there": ("averages/scaled", "solutions/averages/02_scaled.py"),
    },
)
def test_new_reports_when_it_creates_a_new_assignment(run_course, tiny_copy, name, first_line):
    completed = run_course("new", name, cwd=tiny_copy)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines()[0] == first_line


def test_an_assignment_that_cannot_be_replaced_is_kept(run_course, tiny_copy):
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


def test_comments_in_course_yaml_are_kept(run_course, tiny_copy):
    path = tiny_copy / "course.yaml"
    text = path.read_text().replace("limits:", "# how long\nlimits:") + "\n# the end\n"
    path.write_text(text)
    assert run_course("new", "averages/scaled", cwd=tiny_copy).returncode == 0
    changed = path.read_text()
    row = changed[changed.index("      - id: scaled") : changed.index("\n# the end")]
    assert changed.replace(row, "") == text
