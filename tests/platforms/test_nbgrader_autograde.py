"""`nbgrader autograde` and `generate_feedback`, run for real: the box grades, traps are closed, and what is decided counts once."""

import csv
import html
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from manyheads.platforms.nbgrader_gradebook import open_gradebook
from tests.conftest import Run
from tests.make import TINY
from tests.platforms.nbgrader_class import CLASS, RIGHT, STEM, copy_for_nbgrader, filled
from tests.warm import run_warm

pytestmark = pytest.mark.journey

DIAGNOSIS = "You divided by the length of x everywhere."


def rows(folder: Path, query: str, *values: object) -> list[tuple]:
    with closing(sqlite3.connect(folder / "gradebook.db")) as book:
        return book.execute(query, values).fetchall()


OF = """join submitted_notebook on each.notebook_id = submitted_notebook.id
    join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id"""
SCORES = f"select student_id, sum(auto_score), sum(max_score) from grade each join grade_cells on cell_id = grade_cells.id {OF} group by student_id"
COMMENT = f"select auto_comment from comment each {OF} where student_id = ?"
CELLS = f"select student_id, name, auto_score, needs_manual_grade from grade each join base_cell on cell_id = base_cell.id {OF} order by 1, 2"
COMMENTS = f"select student_id, name, auto_comment from comment each join base_cell on cell_id = base_cell.id {OF} order by 1, 2"


def comment_on(folder: Path, student: str) -> str:
    ((said,),) = rows(folder, COMMENT, student)
    return " ".join(said.split())


def page_of(folder: Path, student: str) -> str:
    return (folder / "feedback" / student / "averages" / f"{STEM}.html").read_text(encoding="utf-8")


def text_of(folder: Path, student: str) -> str:
    body = re.sub(r"<(script|style).*?</\1>", "", page_of(folder, student), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", body)).split())


def cells_of(folder: Path, student: str) -> list[dict]:
    path = folder / "autograded" / student / "averages" / f"{STEM}.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def test_every_student_gets_the_points_that_the_box_gives_whatever_the_notebook_says(trap_class: Path) -> None:
    assert {student: (score, most) for student, score, most in rows(trap_class, SCORES)} == {
        student: (earned, 4) for student, (earned, _) in CLASS.items()
    }
    assert rows(trap_class, "select distinct needs_manual_grade from grade") == [(0,)]


def test_nobodys_trap_stops_nbgrader_or_makes_it_complain(trap_class: Path) -> None:
    log = (trap_class / "autograde.log").read_text()
    assert "Traceback" not in log
    assert [line for line in log.splitlines() if re.search("WARNING|ERROR", line) and "late" not in line.lower()] == []


def test_every_graded_cell_is_there_once_as_it_was_released(trap_class: Path) -> None:
    released = json.loads((trap_class / "exercises" / "averages" / f"{STEM}.ipynb").read_text())["cells"]
    graded = {c["metadata"]["nbgrader"]["grade_id"]: c for c in released if "nbgrader" in c["metadata"]}
    for student in CLASS:
        known = [c for c in cells_of(trap_class, student) if "nbgrader" in c["metadata"]]
        ids = [c["metadata"]["nbgrader"]["grade_id"] for c in known]
        assert sorted(ids) == sorted(graded), student
        for cell in known:
            wanted = graded[cell["metadata"]["nbgrader"]["grade_id"]]
            assert cell["metadata"] == wanted["metadata"], student
            if not cell["metadata"]["nbgrader"]["solution"]:
                assert cell["source"] == wanted["source"], student


def test_nothing_but_exercises_is_copied_to_where_feedback_is_made(trap_class: Path) -> None:
    for step in ("autograded", "feedback"):
        names = {path.name for path in (trap_class / step).rglob("*") if path.is_file()}
        assert names <= {f"{STEM}.ipynb", f"{STEM}.html", "timestamp.txt", "submission_secret.txt"}, step
    assert list((trap_class / ".course").glob("submitted*")) == [], "what was staged"


def test_a_feedback_page_shows_evidence_diagnosis_and_hint(trap_class: Path) -> None:
    page = text_of(trap_class, "wrong_notebook")
    assert "(Score: 2.0 / 4.0)" in page
    assert "✗ averages all that came so far 0 / 1" in page
    assert re.search(r"the output \(\d,\): \d of \d values differ", page)
    assert DIAGNOSIS in page
    assert "hint: How many numbers are in the mean at position 0?" in page
    assert "(isolation: namespaces)" in page


def test_no_page_and_no_notebook_shows_hidden_source(trap_class: Path) -> None:
    hidden = [*(trap_class / "grader").rglob("*.py"), *(trap_class / "solutions").rglob("*.py")]
    public = (trap_class / "exercises" / "averages" / f"{STEM}.py").read_text()
    lines = {line.strip() for path in hidden for line in path.read_text().splitlines()}
    telling = [line for line in lines if len(line) > 25 and line not in public and "cumsum" not in line]
    assert len(telling) > 20
    for student in CLASS:
        seen = html.unescape(re.sub(r"<[^>]+>", "", page_of(trap_class, student))) + str(cells_of(trap_class, student))
        assert [line for line in telling if line in seen] == [], student


@pytest.mark.parametrize(("student", "says"), [
    ("notebook_that_is_not_json", "This is not a notebook that can be read: save it again from Jupyter."),
    ("nothing_handed_in", f"{STEM}.py was not handed in."),
    ("script_and_notebook", f"Both {STEM}.py and {STEM}.ipynb were worked on: the .py counts."),
    ("exits", "Line 3 was left out: it ended the whole process."),
    ("stub_and_notebook", "All checks passed. (isolation: namespaces)"),
])  # fmt: skip
def test_what_is_out_of_the_ordinary_is_said_in_the_comment_and_on_the_page(trap_class, student, says):
    assert says in comment_on(trap_class, student)
    assert says in text_of(trap_class, student)


def test_late_penalties_are_worked_out_by_the_courses_own_rule(trap_class: Path) -> None:
    query = """select student_id, late_submission_penalty from submitted_notebook
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
        where late_submission_penalty is not null"""
    assert rows(trap_class, query) == [("late", 0.4)]
    assert "Late submission penalty (Score: -0.4)" in text_of(trap_class, "late")


def test_a_time_that_is_none_is_told_to_the_instructor_and_costs_nothing(trap_class: Path) -> None:
    log = (trap_class / "autograde.log").read_text()
    assert (
        "timestamp.txt contains no valid time, so late_they_say is not late. Next: mend it, then this again with --force"
        in log
    )


def test_what_a_student_wrote_is_text_on_the_page_and_never_a_script_a_link_or_an_image(trap_class: Path) -> None:
    page, said = page_of(trap_class, "html_in_every_text"), text_of(trap_class, "html_in_every_text")
    assert re.findall(r"""<script>alert|(?:href|src)=["'](?:javascript:|https://example)[^"']*""", page) == []
    assert "alert(1)" in said


@pytest.fixture(scope="module")
def ours(once: Callable, trap_class: Path) -> Path:
    """The gradebook that `course grade` fills."""

    def make(folder: Path) -> None:
        course = shutil.copytree(trap_class, folder / "course", ignore=shutil.ignore_patterns("gradebook.db"))
        out, book = str(folder / "results"), f"sqlite:///{folder / 'gradebook.db'}"
        command = ["grade", "submitted", "--out", out, "--jobs", "1", "--seed", "0", "--gradebook", book]
        done = run_warm("manyheads", command, course, os.environ)
        assert done.returncode == 1, done.stderr  # some lie beside the exercises, and are named

    return once("both_ways", make)


@pytest.mark.parametrize("query", [CELLS, COMMENTS], ids=["scores", "comments"])
def test_both_ways_give_every_cell_of_every_student_the_same(ours: Path, trap_class: Path, query: str) -> None:
    assert rows(ours, query) == rows(trap_class, query)


DATES = "time_zone: UTC\nlate: {per_day: 10%, at_most: 50%}\n"
OVERRIDES = """\
- {student: extended, due: 2026-03-09 09:00, by: Dr. X}
- {student: by_hand, exercise: running_mean, score: 3, by: Dr. X, comment: on paper}
- {student: excused, excused: true}
"""
LATE, IN_TIME = "2026-03-02 09:30:00 UTC", "2026-03-01 08:59:00 UTC"
STAMPS = {"in_time": IN_TIME, "late": LATE, "extended": LATE, "by_hand": LATE, "excused": LATE, "unknown": ""}
DECIDED = {"in_time": 4, "late": 3.2, "extended": 4, "by_hand": 3, "excused": 4, "unknown": 4}


@pytest.fixture(scope="module")
def graded(once: Callable, nbgrader: Callable) -> Path:
    """The class, by nbgrader's own command, whose late plugin would take everything. To look at: other workers do, too."""

    def through(course: Path) -> None:
        copy_for_nbgrader(TINY, course)
        text = (course / "course.yaml").read_text()
        dated = text.replace("    title: Averages\n", "    title: Averages\n    due: 2026-03-01 09:00\n")
        (course / "course.yaml").write_text(dated + DATES)
        (course / "overrides.yaml").write_text(OVERRIDES)
        for student, stamp in STAMPS.items():
            folder = course / "submitted" / student / "averages"
            folder.mkdir(parents=True)
            (folder / f"{STEM}.ipynb").write_text(json.dumps(filled(RIGHT)))
            if stamp:
                (folder / "timestamp.txt").write_text(stamp)
        nbgrader(course, "generate_assignment", "averages", "--force")
        nbgrader(course, "autograde", "averages", "--LateSubmissionPlugin.penalty_method=zero")
        nbgrader(course, "generate_feedback", "averages")
        nbgrader(course, "export")

    return once("decided", through)


def scores_in(folder: Path, name: str = "gradebook.db") -> dict[str, float]:
    """As nbgrader's own students page and export count: less the penalty."""
    with closing(open_gradebook(f"sqlite:///{folder / name}")) as book:
        found = book.assignment_submissions("averages")
        return {each.student_id: round(each.score - each.late_submission_penalty, 9) for each in found}


def test_nbgraders_own_commands_count_what_is_decided_and_take_one_penalty(graded: Path) -> None:
    assert scores_in(graded) == DECIDED
    with (graded / "grades.csv").open(newline="") as table:
        rows = {row["student_id"]: (row["score"], row["duedate"][:16]) for row in csv.DictReader(table)}
    assert rows["late"] == ("3.2", "2026-03-01 09:00")


def test_the_feedback_page_says_which_rule(graded: Path) -> None:
    pages = {s: (graded / "feedback" / s / "averages" / f"{STEM}.html").read_text() for s in STAMPS}
    assert "1 day 30 minutes after 09:00: 2 days late, −20% (10% a day, at most 50%) (4 → 3.2)" in pages["late"]
    assert "extension until 2026-03-09 09:00 UTC by Dr. X" in pages["extended"]
    assert "score set to 3 by Dr. X: on paper (4 → 3)" in pages["by_hand"]
    assert "handed in at an unknown time: not counted as late" in pages["unknown"]


def test_course_grade_fills_a_gradebook_with_the_same(graded: Path, tmp_path: Path, run_course: Run) -> None:
    url = f"sqlite:///{tmp_path / 'other.db'}"
    done = run_course("grade", "submitted", "--out", tmp_path / "out", "--gradebook", url, cwd=graded)
    assert done.returncode == 0, done.stdout + done.stderr
    assert scores_in(tmp_path, "other.db") == DECIDED
    assert (
        "decided: late: Averages: 1 day 30 minutes after 09:00: 2 days late, −20% (10% a day, at most 50%) (4 → 3.2)"
        in done.stdout
    )
    assert "none of them counts as late: unknown. Next: course collect, or a score in overrides.yaml" in done.stdout
    done = run_course("export", "--gradebook", url, "--format", "canvas", cwd=graded)
    rows = {row[0]: row[-1] for row in csv.reader(done.stdout.splitlines())}
    assert {student: float(rows[student]) for student in STAMPS} == DECIDED
