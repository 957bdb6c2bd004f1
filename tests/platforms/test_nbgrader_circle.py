"""nbgrader's own commands, run for real: the whole circle of an assignment, the box grades, traps
are closed, decisions count once.
"""

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
from nbgrader.coursedir import CourseDirectory

from manyheads.course import Course, load_course
from manyheads.platforms.nbgrader_gradebook import GradebookWriter, open_gradebook, read_gradebook
from manyheads.platforms.wrap_nbgrader_commands import Collect
from manyheads.result import write_result
from tests import make
from tests.conftest import Run
from tests.make import REPOSITORY, TINY
from tests.platforms.nbgrader_class import (
    CLASS,
    RIGHT,
    STEM,
    WRONG,
    copy_for_nbgrader,
    filled_notebook,
)
from tests.warm import run_warm

pytestmark = pytest.mark.journey
TIME = "2026-11-23 12:00:00 UTC"
SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'
STUDENT = "wrong_notebook"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_for_nbgrader(TINY, tmp_path_factory.mktemp("course"))


def test_feedback_comes_back_to_the_student(course, tmp_path, nbgrader, run_course):
    """First the pages of nbgrader's own command, then those of `course feedback`. Beside it lies
    what another account left.
    """
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    root = f"--Exchange.root={exchange}"
    student_folder = tmp_path / "student"
    student_folder.mkdir()
    nbgrader(course, "generate_assignment", "averages", "--force")
    nbgrader(course, "release_assignment", "averages", root)
    assert "manyheads averages" in nbgrader(course, "list", root).stderr
    nbgrader(student_folder, "fetch_assignment", "averages", "--course", "manyheads", root)
    (student_folder / "averages" / f"{STEM}.ipynb").write_text(json.dumps(filled_notebook(WRONG)))
    nbgrader(student_folder, "submit", "averages", "--course", "manyheads", root)
    linking = exchange / "manyheads" / "inbound" / f"linking+averages+{TIME}+abc"
    linking.mkdir()
    (linking / f"{STEM}.py").symlink_to(course / "solutions" / "averages" / f"{STEM}.py")
    (linking / "hidden").symlink_to(course / "grader")
    os.mkfifo(linking / "pipe")
    # its owner may say what they like
    (linking / "timestamp.txt").write_text("2020-01-01 00:00:00 UTC")
    nbgrader(course, "collect", "averages", root)
    assert (
        (course / "submitted" / "linking" / "averages" / "timestamp.txt")
        .read_text()
        .startswith("2026-11-23 12:00:00")
    )
    nbgrader(course, "autograde", "averages")
    assert not [
        path
        for path in (course / "autograded").rglob("*")
        if path.is_symlink() or path.suffix == ".py"
    ]
    scores = {
        result.student: result.score
        for result in read_gradebook(load_course(course), book_of(course))
    }
    assert scores.pop("linking") == 0
    assert list(scores.values()) == [2]
    nbgrader(course, "generate_feedback", "averages")
    nbgrader(course, "release_feedback", "averages", root)
    nbgrader(student_folder, "fetch_feedback", "averages", "--course", "manyheads", root)
    (page,) = (student_folder / "averages" / "feedback").rglob(f"{STEM}.html")
    assert "You divided by the length of x everywhere." in page.read_text(encoding="utf-8")
    (student,) = scores
    exercise = make.exercise("running_mean", score=1, max_score=4, note="A page of our own.")
    write_result(make.result(student, exercise), course / "results")
    assert run_course("feedback", "results", "--out", ".", cwd=course).returncode == 0
    shutil.rmtree(student_folder / "averages" / "feedback")
    nbgrader(course, "release_feedback", "averages", root)
    nbgrader(student_folder, "fetch_feedback", "averages", "--course", "manyheads", root)
    (page,) = (student_folder / "averages" / "feedback").rglob(f"{STEM}.html")
    assert "A page of our own." in page.read_text(encoding="utf-8")


def test_a_hand_in_that_is_gone_does_not_end_the_collection(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    Collect(coursedir=CourseDirectory()).do_copy(str(tmp_path / "gone"), str(copy))
    assert not copy.exists()


def book_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'gradebook.db'}"


def test_an_assignment_of_nbgraders_own_goes_nbgraders_own_way(course, tmp_path, nbgrader):
    """The one that `nbgrader quickstart` makes, in the folder of this course; one of its notebooks,
    for a kernel starts for each.
    """
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
    assert list((course / "feedback" / "ada" / "ps1").glob("*.html"))


def test_what_the_grader_could_not_do_waits_and_the_command_says_so(tmp_path, nbgrader):
    course = copy_for_nbgrader(TINY, tmp_path / "course")
    checks = course / "grader" / "checks" / "test_running_mean.py"
    original = checks.read_text(encoding="utf-8")
    folder = course / "submitted" / "ada" / "averages"
    folder.mkdir(parents=True)
    (folder / f"{STEM}.ipynb").write_text(json.dumps(filled_notebook(RIGHT)))
    nbgrader(course, "generate_assignment", "averages", "--force")
    checks.write_text(
        original.replace("x = draw(draw.integer(5, 9))", "x = 1 / 0"), encoding="utf-8"
    )
    completed = nbgrader(course, "autograde", "averages", check=False)
    assert completed.returncode != 0
    fault = (
        "a fault of the grader's own: values: ZeroDivisionError: division by zero "
        "(test_running_mean.py, line "
    )
    assert fault in completed.stderr
    assert "not graded: ada: running_mean. formgrader shows" in completed.stderr
    assert read_gradebook(load_course(course), book_of(course))[0].score is None
    checks.write_text(original, encoding="utf-8")
    (course / "submitted" / "what?").mkdir()
    shutil.copytree(folder, course / "submitted" / "what?" / "averages")
    completed = nbgrader(course, "autograde", "averages", "--force", check=False)
    assert "'what?': nbgrader reads *, ? and [ as a pattern" in completed.stderr
    shutil.rmtree(course / "submitted" / "what?")
    nbgrader(course, "autograde", "averages", "--force")
    assert read_gradebook(load_course(course), book_of(course))[0].score == 4


@pytest.mark.parametrize("assignment", ["multi_head_attention", "attention_in_practice"])
def test_nbgrader_releases_every_file_of_the_real_course_to_the_byte(
    tmp_path: Path, nbgrader, assignment: str
) -> None:
    """Recordings too: `nbgrader generate_assignment` once took recordings away, for it empties
    exercises/.
    """
    course = copy_for_nbgrader(REPOSITORY, tmp_path / "course")
    log = nbgrader(course, "generate_assignment", assignment, "--force").stderr
    theirs, ours = (root / "exercises" / assignment for root in (course, REPOSITORY))
    expected = sorted(
        p.relative_to(ours) for p in ours.rglob("*") if p.is_file() and "__pycache__" not in p.parts
    )
    assert (
        sorted(path.relative_to(theirs) for path in theirs.rglob("*") if path.is_file()) == expected
    )
    assert {"fingerprints", "figures"} <= {path.parent.name for path in expected}
    for path in expected:
        assert (theirs / path).read_bytes() == (ours / path).read_bytes(), path
    # What is recorded and current was once recorded again, for three minutes and without a word, in
    # every fresh clone.
    assert "recording" not in log


def test_what_an_instructor_put_beside_the_source_stays_and_a_lessons_figure_goes_to_the_feedback(
    own_class, nbgrader
):
    folder, figure = own_class / "source" / "averages", f"averages/figures/{STEM}.svg"
    (folder / "data").mkdir(parents=True)
    for name in ("data/numbers.csv", "02_gone.py"):
        (folder / name).write_text("mine")
    (own_class / "solutions" / figure).parent.mkdir()
    (own_class / "solutions" / figure).write_text(SVG)
    nbgrader(own_class, "generate_assignment", "averages", "--force")
    assert (folder / "data" / "numbers.csv").read_text() == "mine"
    assert not (folder / "02_gone.py").exists(), "of an exercise that the course no longer has"
    assert (own_class / "exercises" / figure).read_text() == SVG
    nbgrader(own_class, "autograde", "averages", "--student", STUDENT, "--force")
    nbgrader(own_class, "generate_feedback", "averages", "--student", STUDENT, "--force")
    assert (own_class / "feedback" / STUDENT / figure).read_text() == SVG


TABLES = {
    "grade_cells": (
        "select name, max_score, base_cell.type from grade_cells join base_cell using (id)"
    ),
    "solution_cells": "select name from base_cell where type = 'SolutionCell'",
    "source_cells": "select name, cell_type, locked, source, checksum from source_cell",
    "notebooks": "select name, kernelspec from notebook",
    "assignments": "select name, course_id from assignment",
}


def test_a_gradebook_holds_the_same_cells_whoever_makes_it(
    trap_class: Path, tiny: Course, tmp_path: Path
) -> None:
    with GradebookWriter(tiny, f"sqlite:///{tmp_path / 'ours.db'}"):
        pass
    for name, query in TABLES.items():
        with closing(sqlite3.connect(tmp_path / "ours.db")) as ours:
            our_rows = sorted(map(with_parsed_json, ours.execute(query)))
        with closing(sqlite3.connect(trap_class / "gradebook.db")) as theirs:
            assert our_rows == sorted(map(with_parsed_json, theirs.execute(query))), name


def with_parsed_json(row: tuple) -> str:
    return str([json.loads(v) if isinstance(v, str) and v.startswith("{") else v for v in row])


def test_validate_runs_the_visible_checks_and_names_the_misconception(tmp_path, nbgrader, tiny):
    """Of notebooks where a student has them: no configuration, nothing hidden."""
    folder = shutil.copytree(tiny.root / "exercises" / "averages", tmp_path / "mine")
    for name, answer in {"right": RIGHT, "wrong": WRONG}.items():
        (folder / f"{name}.ipynb").write_text(json.dumps(filled_notebook(answer)), encoding="utf-8")
    output = nbgrader(folder, "validate", "right.ipynb", "wrong.ipynb", f"{STEM}.ipynb").stdout
    passed, failure, stub = re.split("(?=VALIDATION FAILED)", output)
    assert passed == "Success! Your notebook passes all the tests.\n"
    assert failure.startswith("VALIDATION FAILED ON 1 CELL(S)!")
    assert "averages all that came so far" in failure
    assert "You divided by the length of x everywhere." in failure
    assert "hint: How many numbers are in the mean at position 0?" in failure
    assert "Traceback" not in failure + stub


def test_where_the_course_cannot_be_read_nbgrader_does_nothing_rather_than_run_code_without_a_box(
    own_class, nbgrader
):
    with (own_class / "course.yaml").open("a") as file:
        file.write("nonsense: [\n")
    completed = nbgrader(own_class, "autograde", "averages", "--force", check=False)
    assert completed.returncode == 1
    assert "nothing was done, for nbgrader_config.py cannot prepare nbgrader: " in completed.stderr
    assert "course.yaml" in completed.stderr
    assert "Traceback" not in completed.stderr
    assert "Converting notebook" not in completed.stderr


DIAGNOSIS = "You divided by the length of x everywhere."


def rows(folder: Path, query: str, *values: object) -> list[tuple]:
    with closing(sqlite3.connect(folder / "gradebook.db")) as book:
        return book.execute(query, values).fetchall()


OF = """join submitted_notebook on each.notebook_id = submitted_notebook.id
    join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id"""
SCORES = (
    "select student_id, sum(auto_score), sum(max_score) from grade each join grade_cells on "
    f"cell_id = grade_cells.id {OF} group by student_id"
)
COMMENT_OF = f"select auto_comment from comment each {OF} where student_id = ?"
CELLS = (
    "select student_id, name, auto_score, needs_manual_grade from grade each join base_cell "
    f"on cell_id = base_cell.id {OF} order by 1, 2"
)
COMMENTS = (
    "select student_id, name, auto_comment from comment each join base_cell on cell_id = "
    f"base_cell.id {OF} order by 1, 2"
)


def comment_on(folder: Path, student: str) -> str:
    ((comment,),) = rows(folder, COMMENT_OF, student)
    return " ".join(comment.split())


def page_of(folder: Path, student: str) -> str:
    return (folder / "feedback" / student / "averages" / f"{STEM}.html").read_text(encoding="utf-8")


def text_of(folder: Path, student: str) -> str:
    body = re.sub(r"<(script|style).*?</\1>", "", page_of(folder, student), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", body)).split())


def cells_of(folder: Path, student: str) -> list[dict]:
    path = folder / "autograded" / student / "averages" / f"{STEM}.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def test_every_student_gets_the_points_that_the_box_gives_whatever_the_notebook_says(
    trap_class: Path,
) -> None:
    assert {student: (score, most) for student, score, most in rows(trap_class, SCORES)} == {
        student: (earned, 4) for student, (earned, _) in CLASS.items()
    }
    assert rows(trap_class, "select distinct needs_manual_grade from grade") == [(0,)]


def test_nobodys_trap_stops_nbgrader_or_makes_it_complain(trap_class: Path) -> None:
    log = (trap_class / "autograde.log").read_text()
    assert "Traceback" not in log
    assert [
        line
        for line in log.splitlines()
        if re.search("WARNING|ERROR", line) and "late" not in line.lower()
    ] == []
    says = (
        "timestamp.txt contains no valid time, so late_they_say is not late. Next: mend it, "
        "then this again with --force"
    )
    assert says in log


def test_every_graded_cell_is_there_once_as_it_was_released(trap_class: Path) -> None:
    released = json.loads((trap_class / "exercises" / "averages" / f"{STEM}.ipynb").read_text())[
        "cells"
    ]
    graded = {
        c["metadata"]["nbgrader"]["grade_id"]: c for c in released if "nbgrader" in c["metadata"]
    }
    for student in CLASS:
        nbgrader_cells = [c for c in cells_of(trap_class, student) if "nbgrader" in c["metadata"]]
        ids = [c["metadata"]["nbgrader"]["grade_id"] for c in nbgrader_cells]
        assert sorted(ids) == sorted(graded), student
        for cell in nbgrader_cells:
            expected = graded[cell["metadata"]["nbgrader"]["grade_id"]]
            assert cell["metadata"] == expected["metadata"], student
            if not cell["metadata"]["nbgrader"]["solution"]:
                assert cell["source"] == expected["source"], student


def test_nothing_but_exercises_is_copied_to_where_feedback_is_made(trap_class: Path) -> None:
    for step in ("autograded", "feedback"):
        names = {path.name for path in (trap_class / step).rglob("*") if path.is_file()}
        assert names <= {
            f"{STEM}.ipynb",
            f"{STEM}.html",
            "timestamp.txt",
            "submission_secret.txt",
        }, step
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
    telling = [
        line for line in lines if len(line) > 25 and line not in public and "cumsum" not in line
    ]
    assert len(telling) > 20
    for student in CLASS:
        visible_text = html.unescape(re.sub(r"<[^>]+>", "", page_of(trap_class, student))) + str(
            cells_of(trap_class, student)
        )
        assert [line for line in telling if line in visible_text] == [], student


@pytest.mark.parametrize(
    ("student", "says"),
    [
        (
            "notebook_that_is_not_json",
            "This is not a notebook that can be read: save it again from Jupyter.",
        ),
        ("nothing_handed_in", f"{STEM}.py was not handed in."),
        ("script_and_notebook", f"Both {STEM}.py and {STEM}.ipynb were worked on: the .py counts."),
        ("exits", "Line 3 was left out: it ended the whole process."),
        ("stub_and_notebook", "All checks passed. (isolation: namespaces)"),
    ],
)
def test_what_is_out_of_the_ordinary_is_said_in_the_comment_and_on_the_page(
    trap_class, student, says
):
    assert says in comment_on(trap_class, student)
    assert says in text_of(trap_class, student)


def test_what_a_student_wrote_is_text_on_the_page_and_never_a_script_a_link_or_an_image(
    trap_class: Path,
) -> None:
    page, text = (
        page_of(trap_class, "html_in_every_text"),
        text_of(trap_class, "html_in_every_text"),
    )
    assert (
        re.findall(
            r"""<script>alert|(?:href|src)=["'](?:javascript:|https://example)[^"']*""", page
        )
        == []
    )
    assert "alert(1)" in text


@pytest.fixture(scope="module")
def ours(once: Callable, trap_class: Path) -> Path:
    """The gradebook that `course grade` fills."""

    def make(folder: Path) -> None:
        course = shutil.copytree(
            trap_class, folder / "course", ignore=shutil.ignore_patterns("gradebook.db")
        )
        out, book = str(folder / "results"), f"sqlite:///{folder / 'gradebook.db'}"
        command = [
            "grade",
            "submitted",
            "--out",
            out,
            "--jobs",
            "1",
            "--seed",
            "0",
            "--gradebook",
            book,
        ]
        completed = run_warm("manyheads", command, course, os.environ)
        assert completed.returncode == 1, (
            completed.stderr
        )  # some lie beside the exercises, and are named

    return once("both_ways", make)


@pytest.mark.parametrize("query", [CELLS, COMMENTS], ids=["scores", "comments"])
def test_both_ways_give_every_cell_of_every_student_the_same(
    ours: Path, trap_class: Path, query: str
) -> None:
    assert rows(ours, query) == rows(trap_class, query)


DATES = "time_zone: UTC\nlate: {per_day: 10%, at_most: 50%}\n"
OVERRIDES = """\
- {student: extended, due: 2026-03-09 09:00, by: Dr. X}
- {student: by_hand, exercise: running_mean, score: 3, by: Dr. X, comment: on paper}
- {student: excused, excused: true}
- {student: absent, due: 2026-03-09 09:00}
- {student: orally, exercise: running_mean, score: 2}
"""
LATE, IN_TIME = "2026-03-02 09:30:00 UTC", "2026-03-01 08:59:00 UTC"
STAMPS = {
    "in_time": IN_TIME,
    "late": LATE,
    "extended": LATE,
    "by_hand": LATE,
    "excused": LATE,
    "unknown": "",
}
DECIDED = {"in_time": 4, "late": 3.2, "extended": 4, "by_hand": 3, "excused": 0, "unknown": 4}
DECIDED["orally"] = 2  # handed in nothing


@pytest.fixture(scope="module")
def graded_class(once: Callable, nbgrader: Callable) -> Path:
    """The class, by nbgrader's own command, whose late plugin would take everything. To look at:
    other workers do, too.
    """

    def through(course: Path) -> None:
        copy_for_nbgrader(TINY, course)
        text = (course / "course.yaml").read_text()
        dated = text.replace(
            "    title: Averages\n", "    title: Averages\n    due: 2026-03-01 09:00\n"
        )
        (course / "course.yaml").write_text(dated + DATES)
        (course / "course.yaml").write_text(
            f"{(course / 'course.yaml').read_text()}roster: roster.csv\n"
        )
        (course / "roster.csv").write_text("\n".join(["id", *STAMPS, "absent", "orally\n"]))
        (course / "overrides.yaml").write_text(OVERRIDES)
        for student, stamp in STAMPS.items():
            folder = course / "submitted" / student / "averages"
            folder.mkdir(parents=True)
            (folder / f"{STEM}.ipynb").write_text(json.dumps(filled_notebook(RIGHT)))
            if stamp:
                (folder / "timestamp.txt").write_text(stamp)
        nbgrader(course, "generate_assignment", "averages", "--force")
        completed = nbgrader(
            course,
            "autograde",
            "averages",
            "--LateSubmissionPlugin.penalty_method=zero",
            check=False,
        )
        (course / "autograde.log").write_text(f"{completed.stdout}{completed.stderr}")
        nbgrader(course, "generate_feedback", "averages")
        nbgrader(course, "export")

    return once("decided", through)


def scores_in(folder: Path, name: str = "gradebook.db") -> dict[str, float]:
    """As nbgrader's own students page and export count: less the penalty."""
    with closing(open_gradebook(f"sqlite:///{folder / name}")) as book:
        submissions = book.assignment_submissions("averages")
        return {
            submission.student_id: round(submission.score - submission.late_submission_penalty, 9)
            for submission in submissions
        }


def test_nbgraders_own_commands_count_what_is_decided_and_take_one_penalty(
    graded_class: Path,
) -> None:
    assert scores_in(graded_class) == DECIDED
    with (graded_class / "grades.csv").open(newline="") as table:
        rows = {
            row["student_id"]: (row["score"], row["duedate"][:16]) for row in csv.DictReader(table)
        }
    assert rows["late"] == ("3.2", "2026-03-01 09:00")
    log = (graded_class / "autograde.log").read_text()
    assert "there is no student" not in log, "course.yaml names the roster"
    assert "excused: excused from all of it, for which nbgrader has no word: no points" in log


def test_the_feedback_page_says_which_rule(graded_class: Path) -> None:
    pages = {
        s: (graded_class / "feedback" / s / "averages" / f"{STEM}.html").read_text() for s in STAMPS
    }
    assert (
        "1 day 30 minutes after 09:00: 2 days late, −20% (10% a day, at most 50%) (4 → 3.2)"
        in pages["late"]
    )
    assert "extension until 2026-03-09 09:00 UTC by Dr. X" in pages["extended"]
    assert "score set to 3 by Dr. X: on paper (4 → 3)" in pages["by_hand"]
    assert "handed in at an unknown time: not counted as late" in pages["unknown"]


def test_course_grade_fills_a_gradebook_with_the_same(
    graded_class: Path, tmp_path: Path, run_course: Run
) -> None:
    url = f"sqlite:///{tmp_path / 'other.db'}"
    completed = run_course(
        "grade", "submitted", "--out", tmp_path / "out", "--gradebook", url, cwd=graded_class
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert scores_in(tmp_path, "other.db") == DECIDED
    assert (
        "none of them counts as late: unknown. Next: a score in "
        "overrides.yaml for whoever was late; of downloads from Moodle or Canvas, course collect "
        "DOWNLOAD --times LIST" in completed.stdout
    )
    completed = run_course("export", "--gradebook", url, "--format", "canvas", cwd=graded_class)
    rows = {row[0]: row[-1] for row in csv.reader(completed.stdout.splitlines())}
    assert rows["excused"] == "EX"  # for which nbgrader has no word
    assert {student: float(rows[student].replace("EX", "0")) for student in DECIDED} == DECIDED
