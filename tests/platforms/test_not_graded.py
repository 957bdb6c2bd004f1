"""What the grader itself could not judge has no score in nbgrader's database, and waits there for a human."""

import json
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from manyheads.course import load_course
from manyheads.platforms.nbgrader_database import open_gradebook
from manyheads.platforms.nbgrader_reader import read_gradebook
from manyheads.platforms.nbgrader_writer import GradebookWriter
from manyheads.result import Outcome, Result
from tests import make
from tests.make import TINY

pytestmark = pytest.mark.journey

STEM = "01_running_mean"
NOTEBOOK = (STEM, "averages")
CHECKS = ("shape", "values", "gradients", "refuses_nothing")


def result(values: Outcome) -> Result:
    """Of the tiny course: everything passed but, perhaps, the values."""
    ends = {id_: values if id_ == "values" else "passed" for id_ in CHECKS}
    checks = [make.check(id_, float(end == "passed"), outcome=end) for id_, end in ends.items()]
    score = None if values == "skipped" else sum(check.score for check in checks)
    return make.result("ada", make.exercise("running_mean", *checks, score=score))


def points_of(grades: Gradebook) -> list[tuple[float | None, bool]]:
    found = grades.find_submission_notebook(*NOTEBOOK, "ada").grades
    return [(each.auto_score, each.needs_manual_grade) for each in found]


def test_it_waits_for_a_human_and_is_read_as_not_graded(tmp_path: Path) -> None:
    course, url = load_course(TINY), f"sqlite:///{tmp_path / 'gradebook.db'}"

    def enter(values: Outcome) -> Result:
        with GradebookWriter(course, url) as book:
            book.write(result(values))
        (read,) = read_gradebook(course, url)
        return read

    assert enter("passed").score == 4
    read = enter("skipped")
    assert (read.score, read.max_score, read.not_graded) == (None, 4, ("running_mean",))
    with open_gradebook(url) as book:
        assert set(points_of(book)) == {(None, True)}
        said = [each.comment for each in book.find_submission_notebook(*NOTEBOOK, "ada").comments if each.comment]
        assert "Not graded: the grader itself failed here." in said[0]
        for grade in book.find_submission_notebook(*NOTEBOOK, "ada").grades:
            grade.manual_score = grade.max_score  # as formgrader saves it
        book.db.commit()
    assert read_gradebook(course, url)[0].score == 4
    assert enter("skipped").score == 4, "what a human gave stays"
    assert enter("failed").score == 4


def test_nbgraders_own_command_says_so_and_enters_no_points(tmp_path, nbgrader, for_nbgrader, fill, right):
    course = tmp_path / "course"
    for_nbgrader(TINY, course)
    checks = course / "grader" / "checks" / "test_running_mean.py"
    whole = checks.read_text(encoding="utf-8")
    folder = course / "submitted" / "ada" / "averages"
    folder.mkdir(parents=True)
    (folder / f"{STEM}.ipynb").write_text(json.dumps(fill(right)))
    nbgrader(course, "generate_assignment", "averages", "--force")
    checks.write_text(whole.replace("x = draw(draw.integer(5, 9))", "x = 1 / 0"), encoding="utf-8")
    done = nbgrader(course, "autograde", "averages", check=False)
    assert done.returncode != 0
    assert (
        "a fault of the grader's own: values: ZeroDivisionError: division by zero. Next: course verify" in done.stderr
    )
    assert f"not graded, because the grader itself failed: ada: {STEM}." in done.stderr
    url = f"sqlite:///{course / 'gradebook.db'}"
    with open_gradebook(url) as book:
        assert set(points_of(book)) == {(None, True)}
    assert read_gradebook(load_course(course), url)[0].score is None
    checks.write_text(whole.replace("def test_values(", "def values("), encoding="utf-8")
    done = nbgrader(course, "autograde", "averages", "--force", check=False)
    assert done.returncode != 0
    assert "running_mean: its checks give 3 points, course.yaml says 4. Nobody is graded." in done.stderr
    checks.write_text(whole, encoding="utf-8")
    nbgrader(course, "autograde", "averages", "--force")
    assert read_gradebook(load_course(course), url)[0].score == 4
