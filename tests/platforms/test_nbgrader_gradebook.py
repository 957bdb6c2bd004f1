"""Scores and comments in nbgrader's database, with SQLite and with a real PostgreSQL server."""

import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import inspect, text

from manyheads.course import Course, load_course
from manyheads.course.final_scores import Decisions, final
from manyheads.files import CourseFault
from manyheads.platforms.nbgrader_gradebook import (
    GradebookWriter,
    KnownCell,
    cell_scores,
    late_share,
    open_gradebook,
    read_gradebook,
)
from manyheads.report.class_summary import not_graded
from manyheads.result import Adjustment, Diagnosed, HandedIn, Result
from tests import make
from tests.make import cases
from tests.platforms.nbgrader_class import gradebook_points

pytestmark = pytest.mark.journey

CHECKS = ("shape", "values", "gradients", "refuses_nothing")
# arguments of nbgrader's functions that find a notebook or one of its cells
NOTEBOOK = ("01_running_mean", "averages")
VALUES_CELL = ("running_mean-values", *NOTEBOOK)


def running_mean_result(
    student: str, values: float | None = 0.0, note: str = "", **fields: Any
) -> Result:
    """Return a result of the tiny course in which all checks except "values" pass.

    values: the points of the check "values"; None if the grader itself failed there.
    """
    points = dict.fromkeys(CHECKS, 1.0) | {"values": values or 0.0}
    outcome = "skipped" if values is None else "failed"
    checks = [
        make.check(id_, score, 1, outcome, title=f"the {id_}", evidence="4 of 5 values differ")
        for id_, score in points.items()
    ]
    score = None if values is None else sum(points.values())
    misconception = Diagnosed(id="counts_all", title="You counted all.", hint="How many?")
    diagnosis = () if values == 1 else (misconception,)
    exercise = make.exercise("running_mean", *checks, score=score, diagnosis=diagnosis, note=note)
    return make.result(student, exercise, **fields)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a PostgreSQL server on a new socket, and return its URL.

    The URL contains {} for the name of the database.
    """
    initdb_paths = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3])
    )
    if not initdb_paths:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    pytest.importorskip("psycopg")
    run_as_postgres = []
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: a socket's path has at most 107 bytes
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        run_as_postgres = ["runuser", "-u", "postgres", "--"]
    data, socket = folder / "data", f"-k {folder} -c listen_addresses= -c fsync=off"

    def run(program: str, *arguments: str) -> None:
        command = [
            *run_as_postgres,
            str(initdb_paths[-1].with_name(program)),
            "-D",
            str(data),
            *arguments,
        ]
        completed = subprocess.run(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert completed.returncode == 0, completed.stderr

    try:
        run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
        run("pg_ctl", "start", "-w", "-l", str(folder / "log"), "-o", socket)
        url = f"postgresql://postgres@/{{}}?host={folder}"
        # new databases are copies of template1, so nbgrader's tables are created only once
        open_gradebook(url.format("template1")).close()
        yield url
        run("pg_ctl", "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty gradebook in SQLite. It is created once, because that takes a second."""
    path = tmp_path_factory.mktemp("new") / "gradebook.db"
    open_gradebook(f"sqlite:///{path}").close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, new_file: Path) -> str:
    """Return the URL of a database without entries."""
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copy(new_file, tmp_path)}"
    server: str = request.getfixturevalue("server")
    name = f"test_{uuid4().hex}"
    with pytest.importorskip("psycopg").connect(
        server.format("postgres"), autocommit=True
    ) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return server.format(name)


@pytest.fixture
def book(url: str) -> Iterator[Callable[[], Gradebook]]:
    """Return a function that opens the database as nbgrader does, without cached entries."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(open_gradebook(url)))


def write_to_gradebook(course: Course, url: str, *results: Result) -> None:
    """Write these results one after the other."""
    with GradebookWriter(course, url) as writer:
        for student_result in results:
            writer.write(student_result)


def row_counts(book: Gradebook) -> dict[str, int]:
    """Return the number of rows of each table."""
    tables = inspect(book.engine).get_table_names()
    return {t: book.db.execute(text(f'SELECT count(*) FROM "{t}"')).scalar_one() for t in tables}


def student_scores(book: Gradebook) -> dict[str, float]:
    """Return the total score of each student, without late penalties."""
    return {student.id: student.score for student in book.students}


def written_comment(book: Gradebook, student: str) -> str:
    """Return the comment that the student sees."""
    return book.find_comment("running_mean-2", *NOTEBOOK, student).comment


def test_a_second_run_updates_scores_and_comments_in_place(tiny, url, book):
    write_to_gradebook(tiny, url, running_mean_result("ada"), running_mean_result("ben"))
    old_counts = row_counts(book())
    write_to_gradebook(
        tiny,
        url,
        running_mean_result("ada"),
        running_mean_result("ben", 0.25, note="The .py counts."),
        running_mean_result("ada", 1),
    )
    gradebook = book()
    assert row_counts(gradebook) == old_counts
    assert old_counts["student"] == old_counts["submitted_assignment"] == 2
    assert student_scores(gradebook) == {"ada": 4, "ben": 3.25}
    assert {student.max_score for student in gradebook.students} == {4}
    grades = gradebook.find_submission_notebook(*NOTEBOOK, "ben").grades
    assert not any(grade.needs_manual_grade for grade in grades)
    assert gradebook.find_grade(*VALUES_CELL, "ben").auto_score == 0.25
    lines = [line.strip() for line in written_comment(gradebook, "ben").splitlines()]
    assert lines == [
        "The .py counts.",
        "You counted all.",
        "the values",
        "4 of 5 values differ",
        "hint: How many?",
        "(isolation: namespaces)",
    ]
    expected = "All checks passed.\n    (isolation: namespaces)"
    assert written_comment(gradebook, "ada").strip() == expected


def test_manual_scores_and_comments_are_kept(tiny, url, book):
    write_to_gradebook(tiny, url, running_mean_result("ada"))
    edited_book = book()
    grade = edited_book.find_grade(*VALUES_CELL, "ada")
    grade.manual_score, grade.extra_credit = 0.75, 0.5
    edited_book.find_comment("running_mean-2", *NOTEBOOK, "ada").manual_comment = "Talk to me."
    edited_book.db.commit()
    write_to_gradebook(tiny, url, running_mean_result("ada", 1))
    assert student_scores(book()) == {"ada": 3 + 0.75 + 0.5}
    assert written_comment(book(), "ada") == "Talk to me."


def test_an_interrupted_run_writes_nothing_for_its_last_student(tiny, url, book, monkeypatch):
    def interrupt(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    write_to_gradebook(tiny, url, running_mean_result("ada"))
    old_counts = row_counts(book())
    with monkeypatch.context() as patched:
        # after all of the scores
        patched.setattr("manyheads.platforms.nbgrader_gradebook.comment", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_to_gradebook(tiny, url, running_mean_result("ben", 1))
    assert row_counts(book()) == old_counts
    write_to_gradebook(tiny, url, running_mean_result("ada"), running_mean_result("ben", 1))
    assert student_scores(book()) == {"ada": 3, "ben": 4}


@pytest.fixture
def released_notebook(tiny_copy: Path) -> Path:
    """Return the path of the released notebook of the copied course."""
    return tiny_copy / "exercises" / "averages" / "01_running_mean.ipynb"


def test_changed_cells_are_refused_if_submissions_exist(tiny_copy, released_notebook, url, book):
    write_to_gradebook(load_course(tiny_copy), url, running_mean_result("ada", 1))
    old_counts = row_counts(book())
    text = released_notebook.read_text()
    released_notebook.write_text(text.replace("running_mean-hygiene", "running_mean-tidiness"))
    problem = r"with other cells than exercises/ has\. Next: course grade"
    with pytest.raises(CourseFault, match=problem):
        write_to_gradebook(load_course(tiny_copy), url)
    assert row_counts(book()) == old_counts


def set_points(released_notebook: Path, points: dict[str, float]) -> None:
    """Change the points of these checks' cells in the released notebook."""
    notebook = json.loads(released_notebook.read_text())
    for cell in notebook["cells"]:
        fields = cell["metadata"].get("nbgrader", {})
        name = fields.get("grade_id", "").removeprefix("running_mean-")
        if name in points:
            fields["points"] = points[name]
    released_notebook.write_text(json.dumps(notebook))


def test_scores_are_refused_until_cells_and_checks_have_the_same_points(
    tiny_copy, released_notebook, url, book
):
    """Earlier, a score was cut to the old points of its cell, and a total of 4 became 3.5."""
    points = {"shape": 0.5, "values": 1.5, "gradients": 1, "refuses_nothing": 1}
    checks = [make.check(id_, score, score) for id_, score in points.items()]
    moved = make.result("ada", make.exercise("running_mean", *checks))
    write_to_gradebook(load_course(tiny_copy), url, running_mean_result("ada", 1))
    problem = r"other points than its checks give now .*of ada was.*Next: course release"
    with pytest.raises(CourseFault, match=problem):
        write_to_gradebook(load_course(tiny_copy), url, moved)
    assert student_scores(book()) == {"ada": 4}
    set_points(released_notebook, points)
    write_to_gradebook(load_course(tiny_copy), url, moved)
    assert student_scores(book()) == {"ada": 4}
    assert book().find_grade(*VALUES_CELL, "ada").auto_score == 1.5
    set_points(released_notebook, {"values": 2})
    problem = r"has 4\.5 points, course\.yaml says 4: the gradebook stays as it was"
    with pytest.raises(CourseFault, match=problem):
        write_to_gradebook(load_course(tiny_copy), url, moved)
    assert [student.max_score for student in book().students] == [4]


def awaits_manual_score(book: Gradebook, student: str) -> list[bool]:
    """Return for each cell whether formgrader asks for a manual score."""
    grades = book.find_submission_notebook(*NOTEBOOK, student).grades
    return [grade.needs_manual_grade and grade.auto_score is None for grade in grades]


def test_a_result_without_a_score_waits_for_manual_grading(tiny, url, book):
    write_to_gradebook(tiny, url, running_mean_result("ada", 1))
    write_to_gradebook(tiny, url, running_mean_result("ada", None))
    (ada,) = read_gradebook(tiny, url)
    assert (ada.score, ada.max_score, ada.not_graded) == (None, 4, ("running_mean",))
    assert [*not_graded(ada)] == [
        "running_mean: nbgrader's gradebook has no score yet, and formgrader asks for one"
    ]
    gradebook = book()
    assert all(awaits_manual_score(gradebook, "ada"))
    assert "Not graded: the grader itself failed here." in written_comment(gradebook, "ada")
    for grade in gradebook.find_submission_notebook(*NOTEBOOK, "ada").grades:
        grade.manual_score = grade.max_score  # as formgrader saves it
    gradebook.db.commit()
    write_to_gradebook(tiny, url, running_mean_result("ada", None), running_mean_result("ada", 0.5))
    assert read_gradebook(tiny, url)[0].score == 4, "a manual score is kept"


@pytest.mark.parametrize("row", ["assignment: averages", "exercise: running_mean"])
def test_an_excused_student_has_no_points(tiny_copy, url, book, row):
    (tiny_copy / "overrides.yaml").write_text(
        f"- {{student: ada, {row}, excused: true, by: Dr. X}}\n"
    )
    course = load_course(tiny_copy)
    decisions = Decisions.of_course(course)
    write_to_gradebook(
        course,
        url,
        *(final(running_mean_result(student, 1), decisions) for student in ("ada", "ben")),
    )
    assert all(awaits_manual_score(book(), "ada"))
    assert "excused: counts for nothing by Dr. X" in written_comment(book(), "ada")
    ada, ben = read_gradebook(course, url)
    assert (ada.is_excused, ada.not_graded, ada.max_score) == (True, (), 0)
    assert (ben.is_excused, ben.score) == (False, 4)


def test_the_gradebook_is_read_with_manual_scores_and_late_penalties(tiny, url, book):
    write_to_gradebook(tiny, url, running_mean_result("ben"), running_mean_result("ada", 1))
    edited_book = book()
    edited_book.find_grade(*VALUES_CELL, "ben").manual_score = 0.5
    edited_book.find_submission_notebook(*NOTEBOOK, "ada").late_submission_penalty = 1.5
    edited_book.db.commit()
    ada, ben = read_gradebook(tiny, url)
    assert (ada.student, ada.score, ada.max_score) == ("ada", 2.5, 4)
    assert (ben.student, ben.score, ben.max_score) == ("ben", 3.5, 4)
    failed = [(c.id, c.score) for c in ben.exercises[0].checks if c.outcome != "passed"]
    assert failed == [("running_mean-values", 0.5)]


DUE = "    title: Averages\n    due: 2026-03-01 09:00\n    late: {per_day: 50%}\n"
HANDED_IN = HandedIn(source="timestamp.txt", time=datetime(2026, 3, 1, 20, tzinfo=UTC))


@pytest.fixture
def write_late_results(tiny_copy: Path, url: str) -> Callable[..., None]:
    """Return a function that writes late results with full points.

    is_dated: whether the course has a due date, and thus a late penalty.
    """
    yaml = tiny_copy / "course.yaml"
    undated = yaml.read_text()
    dated = undated.replace("    title: Averages\n", DUE) + "\ntime_zone: UTC\n"

    def write_late(*students: str, is_dated: bool = False) -> None:
        yaml.write_text(dated if is_dated else undated)
        course = load_course(tiny_copy)
        decisions = Decisions.of_course(course)
        for student in students:
            write_to_gradebook(
                course, url, final(running_mean_result(student, 1, handed_in=HANDED_IN), decisions)
            )

    return write_late


def test_removing_a_due_date_removes_its_late_penalty(write_late_results, book):
    write_late_results("ada", "ben", is_dated=True)
    assert gradebook_points(book()) == {"ada": 2, "ben": 2}
    assert "1 day late" in written_comment(book(), "ada")
    for _ in range(2):
        write_late_results("ada")
        assert gradebook_points(book()) == {"ada": 4, "ben": 2}, "only this result changes"
        assert "late" not in written_comment(book(), "ada")
        assert "1 day late" in written_comment(book(), "ben")
        assert book().find_assignment("averages").duedate is None, "else nbgrader adds a penalty"
    write_late_results("ben")
    assert gradebook_points(book()) == {"ada": 4, "ben": 4}


def test_a_late_penalty_from_a_due_date_set_in_nbgrader_is_kept(write_late_results, book):
    write_late_results("ada", is_dated=True)
    write_late_results("ada")
    edited_book = book()
    edited_book.update_or_create_assignment("averages", duedate="2026-03-01 08:00:00 UTC")
    # as nbgrader autograde enters it
    edited_book.find_submission_notebook(*NOTEBOOK, "ada").late_submission_penalty = 1.5
    edited_book.db.commit()
    write_late_results("ada")
    assert gradebook_points(book()) == {"ada": 2.5}
    assert book().find_assignment("averages").duedate == datetime(2026, 3, 1, 8)


@cases(
    "column, points",
    {
        "infinity": ("manual_score", float("inf")),
        "more than any cell has": ("extra_credit", 1e308),
    },
)
def test_an_impossible_manual_score_is_an_error_and_nothing_is_written(
    tiny, url, book, column, points
):
    write_to_gradebook(tiny, url, running_mean_result("ada", values=0.0))
    edited_book = book()
    setattr(edited_book.find_grade(*VALUES_CELL, "ada"), column, points)
    edited_book.db.commit()
    cell = "of ada in 01_running_mean, cell running_mean-values"
    fault = f"is {points!r}, which is no number of points. Next: enter another one in formgrader"
    problem = re.escape(f"{cell}, {fault}")
    with pytest.raises(CourseFault, match=problem):
        read_gradebook(tiny, url)
    with pytest.raises(CourseFault, match=problem):
        write_to_gradebook(tiny, url, running_mean_result("ada", values=1.0))
    assert book().find_grade(*VALUES_CELL, "ada").auto_score == 0


@pytest.mark.parametrize(
    ("bad_url", "says"),
    [
        ("gradebook.db", "Could not parse"),
        ("sqlite:////nowhere/at/all/gradebook.db", "unable to open database file"),
        ("postgresql://nobody@127.0.0.1:1/none", "Connection refused|connection failed"),
        ("oracle://somewhere/none", "No module named|Can't load plugin"),
    ],
)
def test_a_database_that_cannot_be_opened_is_reported_in_one_line(
    tiny: Course, bad_url: str, says: str
) -> None:
    with pytest.raises(CourseFault, match=says) as raised:
        write_to_gradebook(tiny, bad_url)
    assert str(raised.value).endswith("Next: check the URL, such as sqlite:///gradebook.db")
    assert len(str(raised.value).splitlines()) == 1


def cell(name: str, points: float, *checks: str) -> KnownCell:
    """Return a cell that gives the points of these checks."""
    return KnownCell(name, "", is_solution=False, points=points, checksum="", checks=checks)


CELLS = [cell("shape", 1, "shape"), cell("values", 3, "split", "merge"), cell("visible", 0)]


# row: (final score, rule that changed it, excused, scores of the cells, late share)
CELL_SCORES = {
    "no rule: the points of the checks": (2, "", False, [1, 1, 0], 0),
    "late: the points before the penalty": (1.6, "late", False, [1, 1, 0], 0.2),
    "manual score: shared in proportion to points": (3, "score", False, [0.75, 2.25, 0], 0),
    "excused: the average of the other exercises": (1.6, "late", True, [0.5, 1.5, 0], 0),
}


@pytest.mark.parametrize(
    ("score", "rule", "excused", "cells", "late"),
    CELL_SCORES.values(),
    ids=CELL_SCORES,
)
def test_cell_scores_add_up_to_the_final_score(score, rule, excused, cells, late):
    """The checks give 1 of 1, 1 of 1 and 0 of 2 points.

    If the exercise is excused, the other exercises have 5 of 10 points.
    """
    checks = make.check("shape", 1), make.check("split", 1), make.check("merge", 0, 2)
    adjustments = (Adjustment(rule=rule, words="", before=2, after=score),) if rule else ()
    graded = make.exercise("dance", *checks, score=score, adjustments=adjustments, excused=excused)
    total, max_total = (5, 10) if excused else (score, 4)
    counted = make.result("ada", graded, assignment="heads", score=total, max_score=max_total)
    assert cell_scores(graded, counted, CELLS) == pytest.approx(cells)
    assert late_share(graded) == pytest.approx(late)
