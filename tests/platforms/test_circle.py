"""The whole circle of an assignment, and an assignment that is not this course's, with nbgrader's own commands."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from manyheads.result import write_result
from tests import make
from tests.make import TINY

pytestmark = pytest.mark.journey

STEM = "01_running_mean"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, for_nbgrader: Callable[[Path, Path], Path]) -> Path:
    return for_nbgrader(TINY, tmp_path_factory.mktemp("course"))


def test_feedback_comes_back_to_the_student(course, tmp_path, nbgrader, fill, wrong, run_course):
    """First the pages of nbgrader's own command, then those of `course feedback`."""
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    root = f"--Exchange.root={exchange}"
    mine = tmp_path / "student"
    mine.mkdir()
    nbgrader(course, "generate_assignment", "averages", "--force")
    nbgrader(course, "release_assignment", "averages", root)
    nbgrader(mine, "fetch_assignment", "averages", "--course", "manyheads", root)
    (mine / "averages" / f"{STEM}.ipynb").write_text(json.dumps(fill(wrong)))
    nbgrader(mine, "submit", "averages", "--course", "manyheads", root)
    nbgrader(course, "collect", "averages", root)
    nbgrader(course, "autograde", "averages")
    nbgrader(course, "generate_feedback", "averages")
    nbgrader(course, "release_feedback", "averages", root)
    nbgrader(mine, "fetch_feedback", "averages", "--course", "manyheads", root)
    (page,) = (mine / "averages" / "feedback").rglob(f"{STEM}.html")
    assert "You divided by the length of x everywhere." in page.read_text(encoding="utf-8")
    (handed_in,) = (course / "submitted").glob("*/averages")
    exercise = make.exercise("running_mean", score=1, max_score=4, note="A page of our own.")
    write_result(make.result(handed_in.parent.name, exercise), course / "results")
    assert run_course("feedback", "results", "--out", ".", cwd=course).returncode == 0
    shutil.rmtree(mine / "averages" / "feedback")
    nbgrader(course, "release_feedback", "averages", root)
    nbgrader(mine, "fetch_feedback", "averages", "--course", "manyheads", root)
    (page,) = (mine / "averages" / "feedback").rglob(f"{STEM}.html")
    assert "A page of our own." in page.read_text(encoding="utf-8")


def test_an_assignment_of_nbgraders_own_goes_nbgraders_own_way(course, tmp_path, nbgrader):
    """The one that `nbgrader quickstart` makes, in the folder of this course; one of its notebooks, for a kernel starts
    for each."""
    nbgrader(tmp_path, "quickstart", "other")
    (tmp_path / "other" / "source" / "ps1" / "problem2.ipynb").unlink()
    shutil.copytree(tmp_path / "other" / "source" / "ps1", course / "source" / "ps1")
    nbgrader(course, "generate_assignment", "ps1")
    shutil.copytree(course / "exercises" / "ps1", course / "submitted" / "ada" / "ps1")
    nbgrader(course, "autograde", "ps1")
    nbgrader(course, "generate_feedback", "ps1")
    with closing(sqlite3.connect(course / "gradebook.db")) as book:
        ((graded,),) = book.execute("select count(*) from grade where auto_score is not null")
    assert graded > 0
    assert (course / "source" / "ps1" / "problem1.ipynb").exists()
    assert list((course / "feedback" / "ada" / "ps1").glob("*.html"))
