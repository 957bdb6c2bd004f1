"""Dates and overrides.yaml in nbgrader's gradebook: the same scores by either way, one penalty."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from manyheads.platforms.nbgrader_gradebook import open_gradebook
from tests.conftest import Run
from tests.make import TINY
from tests.platforms.nbgrader_class import RIGHT, STEM, copy_for_nbgrader, filled

pytestmark = pytest.mark.journey

DATES = "time_zone: UTC\nlate: {per_day: 10%, at_most: 50%}\n"
OVERRIDES = """\
- {student: extended, due: 2026-03-09 09:00, by: Dr. X}
- {student: by_hand, exercise: running_mean, score: 3, by: Dr. X, comment: on paper}
- {student: excused, excused: true}
"""
LATE, IN_TIME = "2026-03-02 09:30:00 UTC", "2026-03-01 08:59:00 UTC"
CLASS = {"in_time": IN_TIME, "late": LATE, "extended": LATE, "by_hand": LATE, "excused": LATE, "unknown": ""}
SCORES = {"in_time": 4, "late": 3.2, "extended": 4, "by_hand": 3, "excused": 4, "unknown": 4}


@pytest.fixture(scope="module")
def graded(once: Callable, nbgrader: Callable) -> Path:
    """The class, by nbgrader's own command, whose late plugin would take everything. To look at: other workers do, too."""

    def make(course: Path) -> None:
        copy_for_nbgrader(TINY, course)
        text = (course / "course.yaml").read_text()
        dated = text.replace("    title: Averages\n", "    title: Averages\n    due: 2026-03-01 09:00\n")
        (course / "course.yaml").write_text(dated + DATES)
        (course / "overrides.yaml").write_text(OVERRIDES)
        for student, stamp in CLASS.items():
            folder = course / "submitted" / student / "averages"
            folder.mkdir(parents=True)
            (folder / f"{STEM}.ipynb").write_text(json.dumps(filled(RIGHT)))
            if stamp:
                (folder / "timestamp.txt").write_text(stamp)
        nbgrader(course, "generate_assignment", "averages", "--force")
        nbgrader(course, "autograde", "averages", "--LateSubmissionPlugin.penalty_method=zero")
        nbgrader(course, "generate_feedback", "averages")
        nbgrader(course, "export")

    made: Path = once("decided", make)
    return made


def book_of(folder: Path, name: str = "gradebook.db") -> Gradebook:
    return open_gradebook(f"sqlite:///{folder / name}")


def scores_in(folder: Path, name: str = "gradebook.db") -> dict[str, float]:
    """As nbgrader's own students page and export count: less the penalty."""
    with book_of(folder, name) as book:
        return {
            each.student_id: round(each.score - each.late_submission_penalty, 9)
            for each in book.assignment_submissions("averages")
        }


def test_nbgraders_own_commands_count_what_is_decided_and_take_one_penalty(graded: Path) -> None:
    assert scores_in(graded) == SCORES
    with (graded / "grades.csv").open(newline="") as table:
        rows = {row["student_id"]: (row["score"], row["duedate"][:16]) for row in csv.DictReader(table)}
    assert rows["late"] == ("3.2", "2026-03-01 09:00")


def test_the_feedback_page_says_which_rule(graded: Path) -> None:
    pages = {s: (graded / "feedback" / s / "averages" / f"{STEM}.html").read_text() for s in CLASS}
    assert "1 day 30 minutes after 09:00: 2 days late, −20% (10% a day, at most 50%) (4 → 3.2)" in pages["late"]
    assert "extension until 2026-03-09 09:00 UTC by Dr. X" in pages["extended"]
    assert "score set to 3 by Dr. X: on paper (4 → 3)" in pages["by_hand"]
    assert "handed in at an unknown time: not counted as late" in pages["unknown"]


def test_course_grade_fills_a_gradebook_with_the_same(graded: Path, tmp_path: Path, run_course: Run) -> None:
    url = f"sqlite:///{tmp_path / 'other.db'}"
    done = run_course("grade", "submitted", "--out", tmp_path / "out", "--gradebook", url, cwd=graded)
    assert done.returncode == 0, done.stdout + done.stderr
    assert scores_in(tmp_path, "other.db") == SCORES
    assert (
        "decided: late: Averages: 1 day 30 minutes after 09:00: 2 days late, −20% (10% a day, at most 50%) (4 → 3.2)"
        in done.stdout
    )
    assert "none of them counts as late: unknown. Next: course collect, or a score in overrides.yaml" in done.stdout
    done = run_course("export", "--gradebook", url, "--format", "canvas", cwd=graded)
    rows = {row[0]: row[-1] for row in csv.reader(done.stdout.splitlines())}
    assert {student: float(rows[student]) for student in CLASS} == SCORES
