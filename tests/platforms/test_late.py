"""A course's own rule for late submissions: nbgrader asks it, and its penalty is in every place that shows a score."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.course import load_course
from manyheads.platforms.nbgrader_reader import read_gradebook
from tests.make import TINY

pytestmark = pytest.mark.journey

STEM = "01_running_mean"
RULE = '''
from nbgrader.plugins import BasePlugin


class TenthPerDay(BasePlugin):
    """A tenth of the score for each day that has begun; nothing is left after ten."""

    def late_submission_penalty(self, student_id, score, total_seconds_late):
        days = -(-total_seconds_late // 86400)
        return score * min(1.0, days / 10)


c.AssignLatePenalties.plugin_class = TenthPerDay
'''
HANDED_IN = {"in_time": "2026-03-01 08:59:00 UTC", "late": "2026-03-02 09:30:00 UTC"}  # the latter on its second day


@pytest.fixture(scope="module")
def graded(once: Callable, for_nbgrader: Callable, nbgrader: Callable, fill: Callable, right: str) -> Path:
    """A course with this rule and a deadline: graded, with feedback, and exported. To look at: other workers do, too."""

    def make(course: Path) -> None:
        for_nbgrader(TINY, course)
        with (course / "nbgrader_config.py").open("a") as config:
            config.write(RULE)
        for student, timestamp in HANDED_IN.items():
            folder = course / "submitted" / student / "averages"
            folder.mkdir(parents=True)
            (folder / f"{STEM}.ipynb").write_text(json.dumps(fill(right)))
            (folder / "timestamp.txt").write_text(timestamp)
        nbgrader(course, "generate_assignment", "averages", "--force")
        nbgrader(course, "db", "assignment", "add", "averages", "--duedate", "2026-03-01 09:00 UTC")
        nbgrader(course, "autograde", "averages")
        nbgrader(course, "generate_feedback", "averages")
        nbgrader(course, "export")

    made: Path = once("late", make)
    return made


def test_the_penalty_is_in_nbgraders_own_export(graded: Path) -> None:
    with (graded / "grades.csv").open(newline="") as table:
        found = {row["student_id"]: (row["raw_score"], row["score"]) for row in csv.DictReader(table)}
    assert found == {"in_time": ("4.0", "4.0"), "late": ("4.0", "3.2")}


def test_the_penalty_is_on_the_feedback_page(graded: Path) -> None:
    pages = {s: (graded / "feedback" / s / "averages" / f"{STEM}.html").read_text() for s in HANDED_IN}
    assert "Late submission penalty (Score: -0.8)" in pages["late"]
    assert "Late submission penalty" not in pages["in_time"]


def test_the_penalty_is_in_what_course_export_reads(graded: Path) -> None:
    results = read_gradebook(load_course(graded), f"sqlite:///{graded / 'gradebook.db'}")
    found = {result.student: (result.score, result.exercises[0].note) for result in results}
    assert found == {"in_time": (4, ""), "late": (3.2, "late: −0.8")}
