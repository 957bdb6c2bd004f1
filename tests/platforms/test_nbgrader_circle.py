"""Internal: no command can make a submission disappear while nbgrader collects it.

All other tests run nbgrader's own commands: an assignment from release to feedback, the submissions
of the trap class, and a class with overrides and a due date.
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
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory

from manyheads.platforms.nbgrader_gradebook import GradebookWriter, open_gradebook
from manyheads.platforms.wrap_nbgrader_commands import Collect
from manyheads.result import write_result
from tests import make
from tests.make import REPOSITORY, TINY
from tests.platforms.nbgrader_class import (
    CLASS,
    RIGHT,
    STEM,
    WRONG,
    copy_for_nbgrader,
    filled_notebook,
    gradebook_points,
)
from tests.warm import run_warm

pytestmark = pytest.mark.journey
INBOUND_TIME = "2026-11-23 12:00:00 UTC"
SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'
STUDENT = "wrong_notebook"
DATA = "averages/data/numbers.csv"
FIGURE = f"averages/figures/{STEM}.svg"
OLD_EXERCISE = "averages/02_gone.py"
DIAGNOSIS = "You divided by the length of x everywhere."


@pytest.fixture(scope="module")
def nbgrader_course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tiny course with nbgrader's configuration."""
    return copy_for_nbgrader(TINY, tmp_path_factory.mktemp("course"))


def test_feedback_reaches_the_student_through_the_exchange(
    nbgrader_course, tmp_path, nbgrader, run_course
):
    """The pages come first from nbgrader's own command, then from `course feedback`.

    A hostile submission in the exchange contains links, a pipe and a forged time.
    """
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    root = f"--Exchange.root={exchange}"
    student_folder = tmp_path / "student"
    student_folder.mkdir()

    def as_student(command: str) -> None:
        nbgrader(student_folder, command, "averages", "--course", "manyheads", root)

    def returned_page() -> str:
        nbgrader(nbgrader_course, "release_feedback", "averages", root)
        shutil.rmtree(student_folder / "averages" / "feedback", ignore_errors=True)
        as_student("fetch_feedback")
        (page,) = (student_folder / "averages" / "feedback").rglob(f"{STEM}.html")
        return page.read_text(encoding="utf-8")

    nbgrader(nbgrader_course, "generate_assignment", "averages", "--force")
    nbgrader(nbgrader_course, "release_assignment", "averages", root)
    assert "manyheads averages" in nbgrader(nbgrader_course, "list", root).stderr
    as_student("fetch_assignment")
    (student_folder / "averages" / f"{STEM}.ipynb").write_text(json.dumps(filled_notebook(WRONG)))
    as_student("submit")
    linking = exchange / "manyheads" / "inbound" / f"linking+averages+{INBOUND_TIME}+abc"
    linking.mkdir()
    (linking / f"{STEM}.py").symlink_to(nbgrader_course / "solutions" / "averages" / f"{STEM}.py")
    (linking / "hidden").symlink_to(nbgrader_course / "grader")
    os.mkfifo(linking / "pipe")
    (linking / "timestamp.txt").write_text("2020-01-01 00:00:00 UTC")
    nbgrader(nbgrader_course, "collect", "averages", root)
    stamp = nbgrader_course / "submitted" / "linking" / "averages" / "timestamp.txt"
    assert stamp.read_text().startswith("2026-11-23 12:00:00")
    nbgrader(nbgrader_course, "autograde", "averages")
    copied = [*(nbgrader_course / "autograded").rglob("*")]
    assert not [path for path in copied if path.is_symlink() or path.suffix == ".py"]
    scores = gradebook_points(open_book_at(nbgrader_course / "gradebook.db"))
    assert scores.pop("linking") == 0
    ((student, score),) = scores.items()
    assert score == 2
    nbgrader(nbgrader_course, "generate_feedback", "averages")
    assert DIAGNOSIS in returned_page()
    exercise = make.exercise("running_mean", score=1, max_score=4, note="A page of our own.")
    write_result(make.result(student, exercise), nbgrader_course / "results")
    assert run_course("feedback", "results", "--out", ".", cwd=nbgrader_course).returncode == 0
    assert "A page of our own." in returned_page()


def test_a_submission_that_disappears_does_not_stop_the_collection(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    Collect(coursedir=CourseDirectory()).do_copy(str(tmp_path / "gone"), str(copy))
    assert not copy.exists()


def test_an_assignment_outside_the_course_is_graded_by_nbgrader_alone(
    nbgrader_course, tmp_path, nbgrader
):
    """The assignment is the example of `nbgrader quickstart`.

    Only one of its notebooks is used, because a kernel starts for each.
    """
    nbgrader(tmp_path, "quickstart", "other")
    (tmp_path / "other" / "source" / "ps1" / "problem2.ipynb").unlink()
    shutil.copytree(tmp_path / "other" / "source" / "ps1", nbgrader_course / "source" / "ps1")
    nbgrader(nbgrader_course, "generate_assignment", "ps1")
    shutil.copytree(
        nbgrader_course / "exercises" / "ps1", nbgrader_course / "submitted" / "ada" / "ps1"
    )
    nbgrader(nbgrader_course, "autograde", "ps1")
    nbgrader(nbgrader_course, "generate_feedback", "ps1")
    ((graded,),) = gradebook_rows(
        nbgrader_course, "select count(*) from grade where auto_score is not null"
    )
    assert graded > 0
    assert list((nbgrader_course / "feedback" / "ada" / "ps1").glob("*.html"))


def test_a_grader_failure_leaves_no_score_and_fails_the_command(tmp_path, nbgrader):
    course = copy_for_nbgrader(TINY, tmp_path / "course")
    folder = course / "submitted" / "ada" / "averages"
    folder.mkdir(parents=True)
    (folder / f"{STEM}.ipynb").write_text(json.dumps(filled_notebook(RIGHT)))
    nbgrader(course, "generate_assignment", "averages", "--force")
    checks = course / "grader" / "checks" / "test_running_mean.py"
    original = checks.read_text(encoding="utf-8")
    make.replace(checks, "x = draw(draw.integer(5, 9))", "x = 1 / 0")
    completed = nbgrader(course, "autograde", "averages", check=False)
    assert completed.returncode != 0
    fault = (
        "a fault of the grader's own: values: ZeroDivisionError: division by zero "
        "(test_running_mean.py, line "
    )
    assert fault in completed.stderr
    assert "not graded: ada: running_mean. formgrader shows" in completed.stderr
    checks.write_text(original, encoding="utf-8")
    shutil.copytree(folder, course / "submitted" / "what?" / "averages")
    completed = nbgrader(course, "autograde", "averages", "--force", check=False)
    assert "'what?': nbgrader reads *, ? and [ as a pattern" in completed.stderr
    shutil.rmtree(course / "submitted" / "what?")
    nbgrader(course, "autograde", "averages", "--force")
    assert gradebook_points(open_book_at(course / "gradebook.db")) == {"ada": 4}


@pytest.mark.parametrize("assignment", ["multi_head_attention", "attention_in_practice"])
def test_generate_assignment_releases_the_same_bytes_as_are_committed(
    tmp_path: Path, nbgrader, assignment: str
) -> None:
    """The command empties exercises/. The recordings in it (fingerprints/) were once lost."""
    course = copy_for_nbgrader(REPOSITORY, tmp_path / "course")
    log = nbgrader(course, "generate_assignment", assignment, "--force").stderr
    released = make.content(course / "exercises" / assignment)
    committed = make.content(REPOSITORY / "exercises" / assignment)
    assert released.keys() == committed.keys()
    assert {"fingerprints", "figures"} <= {path.split("/")[0] for path in committed}
    assert [path for path in committed if released[path] != committed[path]] == []
    # In a fresh clone, up-to-date recordings were once made again, which took three minutes.
    assert "recording" not in log


@pytest.fixture(scope="module")
def class_with_added_files(
    trap_class: Path, tmp_path_factory: pytest.TempPathFactory, nbgrader
) -> Path:
    """Return a class, graded with three added files: data, a figure, and an old exercise."""
    folder = shutil.copytree(trap_class, tmp_path_factory.mktemp("class") / "own_class")
    data = folder / "source" / DATA
    data.parent.mkdir(parents=True)
    data.write_text("mine")
    figure = folder / "solutions" / FIGURE
    figure.parent.mkdir()
    figure.write_text(SVG)
    (folder / "source" / OLD_EXERCISE).write_text("mine")
    nbgrader(folder, "generate_assignment", "averages", "--force")
    for command in ("autograde", "generate_feedback"):
        nbgrader(folder, command, "averages", "--student", STUDENT, "--force")
    return folder


def test_generate_assignment_keeps_data_files(class_with_added_files):
    assert (class_with_added_files / "source" / DATA).read_text() == "mine"


def test_generate_assignment_removes_an_exercise_without_a_solution(class_with_added_files):
    assert not (class_with_added_files / "source" / OLD_EXERCISE).exists()


def test_figures_are_copied_to_the_released_assignment_and_to_the_feedback(class_with_added_files):
    assert (class_with_added_files / "exercises" / FIGURE).read_text() == SVG
    assert (class_with_added_files / "feedback" / STUDENT / FIGURE).read_text() == SVG


TABLE_QUERIES = {
    "grade_cells": (
        "select name, max_score, base_cell.type from grade_cells join base_cell using (id)"
    ),
    "solution_cells": "select name from base_cell where type = 'SolutionCell'",
    "source_cells": "select name, cell_type, locked, source, checksum from source_cell",
    "notebooks": "select name, kernelspec from notebook",
    "assignments": "select name, course_id from assignment",
}


def test_our_gradebook_has_the_same_cells_as_nbgraders(trap_class, tiny, tmp_path):
    with GradebookWriter(tiny, f"sqlite:///{tmp_path / 'gradebook.db'}"):
        pass
    for name, query in TABLE_QUERIES.items():
        ours, theirs = gradebook_rows(tmp_path, query), gradebook_rows(trap_class, query)
        assert sorted(map(with_parsed_json, ours)) == sorted(map(with_parsed_json, theirs)), name


def with_parsed_json(row: tuple) -> str:
    """Return the row as text, with parsed JSON objects."""
    return str([json.loads(v) if isinstance(v, str) and v.startswith("{") else v for v in row])


def test_validate_runs_the_visible_checks_and_names_the_misconception(tmp_path, nbgrader, tiny):
    """The notebooks are in a student's folder, without configuration and hidden files."""
    folder = shutil.copytree(tiny.root / "exercises" / "averages", tmp_path / "mine")
    for name, answer in {"right": RIGHT, "wrong": WRONG}.items():
        (folder / f"{name}.ipynb").write_text(json.dumps(filled_notebook(answer)), encoding="utf-8")
    output = nbgrader(folder, "validate", "right.ipynb", "wrong.ipynb", f"{STEM}.ipynb").stdout
    passed, failure, stub = re.split("(?=VALIDATION FAILED)", output)
    assert passed == "Success! Your notebook passes all the tests.\n"
    assert failure.startswith("VALIDATION FAILED ON 1 CELL(S)!")
    assert "averages all that came so far" in failure
    assert DIAGNOSIS in failure
    assert "hint: How many numbers are in the mean at position 0?" in failure
    assert "Traceback" not in failure + stub


def test_nbgrader_runs_no_code_without_a_box_if_the_course_cannot_be_read(
    trap_class_copy, nbgrader
):
    make.add("course.yaml", "nonsense: [\n")(trap_class_copy)
    completed = nbgrader(trap_class_copy, "autograde", "averages", "--force", check=False)
    assert completed.returncode == 1
    problem = "nothing was done, for nbgrader_config.py cannot prepare nbgrader: .*course.yaml"
    assert re.search(problem, completed.stderr)
    assert not re.search("Traceback|Converting notebook", completed.stderr)


def open_book_at(path: Path) -> Gradebook:
    """Open the gradebook in this file."""
    return open_gradebook(f"sqlite:///{path}")


def gradebook_rows(folder: Path, query: str, *values: object) -> list[tuple]:
    """Return the rows that a query finds in a folder's gradebook.db."""
    with closing(sqlite3.connect(folder / "gradebook.db")) as book:
        return book.execute(query, values).fetchall()


JOIN_STUDENT = """join submitted_notebook on each.notebook_id = submitted_notebook.id
    join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id"""
POINTS_QUERY = (
    "select student_id, sum(auto_score), sum(max_score) from grade each join grade_cells on "
    f"cell_id = grade_cells.id {JOIN_STUDENT} group by student_id"
)
COMMENT_QUERY = f"select auto_comment from comment each {JOIN_STUDENT} where student_id = ?"
CELLS_QUERY = (
    "select student_id, name, auto_score, needs_manual_grade from grade each join base_cell "
    f"on cell_id = base_cell.id {JOIN_STUDENT} order by 1, 2"
)
COMMENTS_QUERY = (
    "select student_id, name, auto_comment from comment each join base_cell on cell_id = "
    f"base_cell.id {JOIN_STUDENT} order by 1, 2"
)


def stored_comment(folder: Path, student: str) -> str:
    """Return a student's comment from the gradebook, with blanks in place of line ends."""
    ((comment,),) = gradebook_rows(folder, COMMENT_QUERY, student)
    return " ".join(comment.split())


def feedback_page(folder: Path, student: str) -> str:
    """Return the HTML of a student's feedback page."""
    return (folder / "feedback" / student / "averages" / f"{STEM}.html").read_text(encoding="utf-8")


def feedback_text(folder: Path, student: str) -> str:
    """Return the visible text of a student's feedback page."""
    body = re.sub(r"<(script|style).*?</\1>", "", feedback_page(folder, student), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", body)).split())


def autograded_notebook(folder: Path, student: str) -> Path:
    """Return the path of a student's autograded notebook."""
    return folder / "autograded" / student / "averages" / f"{STEM}.ipynb"


def test_every_student_has_the_expected_points(trap_class):
    expected = [(student, points, 4) for student, (points, _) in sorted(CLASS.items())]
    assert gradebook_rows(trap_class, POINTS_QUERY) == expected
    assert gradebook_rows(trap_class, "select distinct needs_manual_grade from grade") == [(0,)]


def test_autograde_logs_no_unexpected_warnings(trap_class):
    log = (trap_class / "autograde.log").read_text()
    assert "Traceback" not in log
    complaints = [line for line in log.splitlines() if re.search("WARNING|ERROR", line)]
    assert [line for line in complaints if "late" not in line.lower()] == []
    advice = (
        "timestamp.txt contains no valid time, so late_they_say is not late. Next: mend it, "
        "then this again with --force"
    )
    assert advice in log


def cells_by_id(notebook: Path) -> list[tuple[str, dict]]:
    """Return the ids and cells with nbgrader metadata, sorted by id."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    metadata = [(cell["metadata"].get("nbgrader"), cell) for cell in cells]
    return sorted(((fields["grade_id"], cell) for fields, cell in metadata if fields), key=str)


def test_autograded_notebooks_have_every_released_cell_once(trap_class):
    released = cells_by_id(trap_class / "exercises" / "averages" / f"{STEM}.ipynb")
    for student in CLASS:
        for (id_, cell), expected in zip(
            cells_by_id(autograded_notebook(trap_class, student)), released, strict=True
        ):
            assert (id_, cell["metadata"]) == (expected[0], expected[1]["metadata"]), student
            is_solution = cell["metadata"]["nbgrader"]["solution"]
            assert is_solution or cell["source"] == expected[1]["source"], student


def test_only_exercise_files_are_copied_for_autograding_and_feedback(trap_class: Path) -> None:
    for step in ("autograded", "feedback"):
        names = {path.name for path in (trap_class / step).rglob("*") if path.is_file()}
        assert names <= {
            f"{STEM}.ipynb",
            f"{STEM}.html",
            "timestamp.txt",
            "submission_secret.txt",
        }, step
    assert list((trap_class / ".course").glob("submitted*")) == [], "copies made while nbgrader ran"


def test_a_feedback_page_shows_evidence_diagnosis_and_hint(trap_class: Path) -> None:
    page = feedback_text(trap_class, "wrong_notebook")
    assert "(Score: 2.0 / 4.0)" in page
    assert "✗ averages all that came so far 0 / 1" in page
    assert re.search(r"the output \(\d,\): \d of \d values differ", page)
    assert DIAGNOSIS in page
    assert "hint: How many numbers are in the mean at position 0?" in page
    assert "(isolation: namespaces)" in page


def test_feedback_and_notebooks_never_show_hidden_source(trap_class):
    hidden = [*(trap_class / "grader").rglob("*.py"), *(trap_class / "solutions").rglob("*.py")]
    lines = {" ".join(line.split()) for path in hidden for line in path.read_text().splitlines()}
    public = (trap_class / "exercises" / "averages" / f"{STEM}.py").read_text()
    lines = {line for line in lines if len(line) > 25 and "cumsum" not in line}
    secret = [line for line in lines if line not in public]
    assert len(secret) > 20
    for student in CLASS:
        visible = (
            feedback_text(trap_class, student)
            + autograded_notebook(trap_class, student).read_text()
        )
        assert [line for line in secret if line in visible] == [], student


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
def test_the_comment_and_the_page_explain_unusual_submissions(trap_class, student, says):
    assert says in stored_comment(trap_class, student)
    assert says in feedback_text(trap_class, student)


def test_the_feedback_page_escapes_html_written_by_students(trap_class: Path) -> None:
    page = feedback_page(trap_class, "html_in_every_text")
    active = r"""<script>alert|(?:href|src)=["'](?:javascript:|https://example)[^"']*"""
    assert re.findall(active, page) == []
    visible_text = feedback_text(trap_class, "html_in_every_text")
    assert "alert(1)" in visible_text  # it is shown as text, and not left out


@pytest.fixture(scope="module")
def ours(once: Callable, trap_class: Path) -> Path:
    """Return a folder with a gradebook that `course grade` filled."""

    def grade_class(folder: Path) -> None:
        ignore = shutil.ignore_patterns("gradebook.db")
        course = shutil.copytree(trap_class, folder / "course", ignore=ignore)
        command = f"grade submitted --jobs 1 --seed 0 --gradebook sqlite:///{folder}/gradebook.db"
        completed = run_warm("manyheads", command.split(), course, os.environ)
        # status 1: some submitted files do not belong to an exercise, and are reported
        assert completed.returncode == 1, completed.stderr

    return once("both_ways", grade_class)


@pytest.mark.parametrize("query", [CELLS_QUERY, COMMENTS_QUERY], ids=["scores", "comments"])
def test_course_grade_and_nbgrader_fill_the_same_gradebook(
    ours: Path, trap_class: Path, query: str
) -> None:
    assert gradebook_rows(ours, query) == gradebook_rows(trap_class, query)


DATES = "time_zone: UTC\nlate: {per_day: 10%, at_most: 50%}\nroster: roster.csv\n"
OVERRIDES = """\
- {student: extended, due: 2026-03-09 09:00, by: Dr. X}
- {student: by_hand, exercise: running_mean, score: 3, by: Dr. X, comment: on paper}
- {student: excused, excused: true}
- {student: absent, due: 2026-03-09 09:00}
- {section: oral, exercise: running_mean, score: 2}
- {group: red, extra: 2 days, by: Dr. X}
"""
LATE_TIME, IN_TIME = "2026-03-02 09:30:00 UTC", "2026-03-01 08:59:00 UTC"
TIMESTAMPS = {
    "in_time": IN_TIME,
    "late": LATE_TIME,
    "extended": LATE_TIME,
    "in_group": LATE_TIME,
    "by_hand": LATE_TIME,
    "excused": LATE_TIME,
    "unknown": "",
}
FINAL_POINTS = {"in_time": 4, "late": 3.2, "extended": 4, "by_hand": 3, "excused": 0, "unknown": 4}
FINAL_POINTS["in_group"] = 4  # more time for a group
FINAL_POINTS["orally"] = 2  # a score in overrides.yaml, without a submission


@pytest.fixture(scope="module")
def graded_class(once: Callable, nbgrader: Callable) -> Path:
    """Return a class with overrides, graded by nbgrader's own commands. Read only.

    nbgrader's plugin for late submissions is set to take all points, and must not be applied.
    """

    def run_nbgrader(course: Path) -> None:
        copy_for_nbgrader(TINY, course)
        make.replace(
            course / "course.yaml",
            "    title: Averages\n",
            "    title: Averages\n    due: 2026-03-01 09:00\n",
        )
        make.add("course.yaml", DATES)(course)
        lines = ["id,section,group", *TIMESTAMPS, "absent", "orally,oral\n"]
        roster = "\n".join(lines).replace("in_group", "in_group,,red")
        (course / "roster.csv").write_text(roster)
        (course / "overrides.yaml").write_text(OVERRIDES)
        for student, stamp in TIMESTAMPS.items():
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

    return once("decided", run_nbgrader)


def test_nbgrader_commands_apply_overrides_and_a_single_late_penalty(graded_class):
    assert gradebook_points(open_book_at(graded_class / "gradebook.db")) == FINAL_POINTS
    with (graded_class / "grades.csv").open(newline="") as table:
        (late,) = [row for row in csv.DictReader(table) if row["student_id"] == "late"]
    assert (late["score"], late["duedate"][:16]) == ("3.2", "2026-03-01 09:00")
    log = (graded_class / "autograde.log").read_text()
    assert "there is no student" not in log, "course.yaml names the roster"
    assert "excused: excused from all of it, for which nbgrader has no word: no points" in log


@pytest.mark.parametrize(
    ("student", "rule"),
    [
        ("late", "1 day 30 minutes after 09:00: 2 days late, −20% (10% a day, at most 50%)"),
        ("late", "at most 50%) (4 → 3.2)"),
        ("extended", "extension until 2026-03-09 09:00 UTC by Dr. X"),
        ("in_group", "2 days more, until 2026-03-03 09:00 UTC by Dr. X"),
        ("by_hand", "score set to 3 by Dr. X: on paper (4 → 3)"),
        ("unknown", "handed in at an unknown time: not counted as late"),
    ],
)
def test_the_feedback_page_names_the_rule_that_changed_the_score(graded_class, student, rule):
    assert rule in feedback_page(graded_class, student)


def test_course_grade_writes_the_same_final_scores_to_a_gradebook(
    graded_class, tmp_path, run_course
):
    url = f"sqlite:///{tmp_path / 'other.db'}"
    command = ["grade", "submitted", "--out", tmp_path / "out", "--gradebook", url]
    completed = run_course(*command, cwd=graded_class)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert gradebook_points(open_book_at(tmp_path / "other.db")) == FINAL_POINTS
    assert (
        "none of them counts as late: unknown. Next: a score in "
        "overrides.yaml for whoever was late; of downloads from Moodle or Canvas, course collect "
        "DOWNLOAD --times LIST" in completed.stdout
    )
    completed = run_course("export", "--gradebook", url, "--format", "canvas", cwd=graded_class)
    exported = {row[0]: row[-1] for row in csv.reader(completed.stdout.splitlines())}
    assert exported.pop("excused") == "EX"  # nbgrader has no such value
    graded = {student: score for student, score in FINAL_POINTS.items() if student != "excused"}
    assert {student: float(exported[student]) for student in graded} == graded
