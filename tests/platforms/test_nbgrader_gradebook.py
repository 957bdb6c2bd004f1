"""Scores and comments in nbgrader's database, SQLite's and a real PostgreSQL server's: once each,
whatever happens.
"""

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
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
from manyheads.result import Adjustment, Diagnosed, ExerciseResult, HandedIn, Result
from tests import make

pytestmark = pytest.mark.journey

CHECKS = ("shape", "values", "gradients", "refuses_nothing")
NOTEBOOK = ("01_running_mean", "averages")
VALUES = ("running_mean-values", *NOTEBOOK)
COMMENT = ("running_mean-2", *NOTEBOOK)


def outcome_of(points: float | None) -> str:
    if points is None:
        return "skipped"
    return "passed" if points == 1 else "failed"


def result(student: str, values: float | None = 0.0, note: str = "") -> Result:
    """Of the tiny course: everything passed but, perhaps, the values. None: the grader itself
    failed at these.
    """
    points = {id_: values if id_ == "values" else 1.0 for id_ in CHECKS}
    evidence = {id_: "" if got == 1 else "4 of 5 values differ" for id_, got in points.items()}
    checks = [
        make.check(id_, got or 0, 1, outcome_of(got), title=f"the {id_}", evidence=evidence[id_])
        for id_, got in points.items()
    ]
    named = (
        ()
        if values == 1
        else (Diagnosed(id="counts_all", title="You counted all.", hint="How many?"),)
    )
    score = None if values is None else sum(points.values())
    return make.result(
        student, make.exercise("running_mean", *checks, score=score, diagnosis=named, note=note)
    )


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a PostgreSQL server, without the database's name: started for these tests, on a
    socket of its own.
    """
    initdb_paths = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3])
    )
    if not initdb_paths:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    pytest.importorskip("psycopg")
    as_somebody = []
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: a socket's path has at most 107 bytes
    if os.geteuid() == 0:  # it refuses to run as root
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        as_somebody = ["runuser", "-u", "postgres", "--"]
    data, socket = folder / "data", f"-k {folder} -c listen_addresses= -c fsync=off"

    def run(program: str, *arguments: str) -> None:
        command = [
            *as_somebody,
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
        # what nbgrader makes of a new database, for every test
        open_gradebook(url.format("template1")).close()
        yield url
        run("pg_ctl", "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What nbgrader makes of a new SQLite file: it takes a second, so it is made once."""
    path = tmp_path_factory.mktemp("new") / "gradebook.db"
    open_gradebook(f"sqlite:///{path}").close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, new_file: Path) -> str:
    """A database without entries."""
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
    """Open the database as nbgrader does, afresh for every look at it."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(open_gradebook(url)))


def write(course: Course, url: str, *results: Result) -> None:
    with GradebookWriter(course, url) as writer:
        for student_result in results:
            writer.write(student_result)


def counts(book: Gradebook) -> dict[str, int]:
    tables = inspect(book.engine).get_table_names()
    return {t: book.db.execute(text(f'SELECT count(*) FROM "{t}"')).scalar_one() for t in tables}


def test_scores_and_comments_stand_where_nbgrader_looks_for_them_and_nothing_doubles(
    tiny, url, book
):
    write(tiny, url, result("ada"), result("ben"))
    old_counts = counts(book())
    write(tiny, url, result("ada"), result("ben", 0.25, note="The .py counts."), result("ada", 1))
    assert counts(book()) == old_counts
    assert old_counts["student"] == old_counts["submitted_assignment"] == 2
    gradebook = book()
    assert {s.id: (s.score, s.max_score) for s in gradebook.students} == {
        "ada": (4, 4),
        "ben": (3.25, 4),
    }
    assert gradebook.find_grade(*VALUES, "ben").auto_score == 0.25
    assert {
        g.needs_manual_grade for g in gradebook.find_submission_notebook(*NOTEBOOK, "ben").grades
    } == {False}
    comment = gradebook.find_comment(*COMMENT, "ben").comment
    assert [line.strip() for line in comment.splitlines()] == [
        "The .py counts.",
        "You counted all.",
        "the values",
        "4 of 5 values differ",
        "hint: How many?",
        "(isolation: namespaces)",
    ]
    assert (
        gradebook.find_comment(*COMMENT, "ada").comment.strip()
        == "All checks passed.\n    (isolation: namespaces)"
    )


def test_what_an_instructor_has_entered_by_hand_stays(
    tiny: Course, url: str, book: Callable[[], Gradebook]
) -> None:
    write(tiny, url, result("ada"))
    edited = book()
    edited.find_grade(*VALUES, "ada").manual_score = 0.75
    edited.find_grade(*VALUES, "ada").extra_credit = 0.5
    edited.find_comment(*COMMENT, "ada").manual_comment = "Talk to me."
    edited.db.commit()
    write(tiny, url, result("ada", 1))
    assert book().find_submission("averages", "ada").score == 3 + 0.75 + 0.5
    assert book().find_comment(*COMMENT, "ada").comment == "Talk to me."


def test_a_run_that_dies_within_a_student_leaves_nothing_of_that_student(
    tiny, url, book, monkeypatch
):
    write(tiny, url, result("ada"))
    old_counts = counts(book())
    with monkeypatch.context() as patched:
        # after all of the scores
        patched.setattr("manyheads.platforms.nbgrader_gradebook.comment", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            write(tiny, url, result("ben", 1))
    assert counts(book()) == old_counts
    write(tiny, url, result("ada"), result("ben", 1))
    assert {s.id: s.score for s in book().students} == {"ada": 3, "ben": 4}


def raise_interrupt(*_: object, **__: object) -> str:
    raise KeyboardInterrupt


def test_cells_do_not_come_and_go_below_submissions(
    tiny_copy: Path, url: str, book: Callable[[], Gradebook]
) -> None:
    write(load_course(tiny_copy), url, result("ada", 1))
    old_counts = counts(book())
    released = tiny_copy / "exercises" / "averages" / "01_running_mean.ipynb"
    released.write_text(
        released.read_text().replace("running_mean-hygiene", "running_mean-tidiness")
    )
    with pytest.raises(
        CourseFault, match=r"with other cells than exercises/ has\. Next: course grade"
    ):
        write(load_course(tiny_copy), url)
    assert counts(book()) == old_counts


def test_points_that_moved_between_two_checks_are_written_as_they_are_or_not_at_all(
    tiny_copy: Path, url: str, book
) -> None:
    """Once a cell's old points cut what was more, and 3.5 of 4 was handed on for 4."""
    points = {"shape": 0.5, "values": 1.5, "gradients": 1, "refuses_nothing": 1}
    moved = make.result(
        "ada",
        make.exercise("running_mean", *(make.check(id_, got, got) for id_, got in points.items())),
    )
    course = load_course(tiny_copy)
    write(course, url, result("ada", 1))
    with pytest.raises(
        CourseFault,
        match=r"other points than its checks give now .*of ada was.*Next: course release",
    ):
        write(course, url, moved)
    assert book().find_submission("averages", "ada").score == 4
    path = tiny_copy / "exercises" / "averages" / "01_running_mean.ipynb"
    notebook = json.loads(path.read_text())
    for cell_metadata in (cell["metadata"].get("nbgrader", {}) for cell in notebook["cells"]):
        name = cell_metadata.get("grade_id", "-").split("-")[1]
        cell_metadata |= {
            "points": 0 if "visible" in name else {"shape": 0.5, "values": 1.5}.get(name, 1)
        }
    path.write_text(json.dumps(notebook))
    write(load_course(tiny_copy), url, moved)
    gradebook = book()
    assert (
        gradebook.find_submission("averages", "ada").score,
        gradebook.find_grade(*VALUES, "ada").auto_score,
    ) == (4, 1.5)
    path.write_text(path.read_text().replace('"points": 1.5', '"points": 2'))
    with pytest.raises(
        CourseFault, match=r"has 4\.5 points, course\.yaml says 4: the gradebook stays as it was"
    ):
        write(load_course(tiny_copy), url, moved)
    assert book().find_submission("averages", "ada").max_score == 4


def test_what_is_not_graded_waits_for_a_human(
    tiny: Course, url: str, book: Callable[[], Gradebook]
) -> None:
    write(tiny, url, result("ada", 1))
    write(tiny, url, result("ada", None))
    (read,) = read_gradebook(tiny, url)
    assert (read.score, read.max_score, read.not_graded) == (None, 4, ("running_mean",))
    assert [*not_graded(read)] == [
        "running_mean: nbgrader's gradebook has no score yet, and formgrader asks for one"
    ]
    gradebook = book()
    grades = gradebook.find_submission_notebook(*NOTEBOOK, "ada").grades
    assert {(entry.auto_score, entry.needs_manual_grade) for entry in grades} == {(None, True)}
    assert (
        "Not graded: the grader itself failed here."
        in gradebook.find_comment(*COMMENT, "ada").comment
    )
    for grade in grades:
        grade.manual_score = grade.max_score  # as formgrader saves it
    gradebook.db.commit()
    assert read_gradebook(tiny, url)[0].score == 4
    write(tiny, url, result("ada", None), result("ada", 0.5))
    assert read_gradebook(tiny, url)[0].score == 4, "what a human gave stays"


@pytest.mark.parametrize("row", ["assignment: averages", "exercise: running_mean"])
def test_an_excuse_has_no_points(tiny_copy, url, book, row):
    (tiny_copy / "overrides.yaml").write_text(
        f"- {{student: ada, {row}, excused: true, by: Dr. X}}\n"
    )
    course = load_course(tiny_copy)
    write(
        course,
        url,
        *(final(result(student, 1), Decisions.of_course(course)) for student in ("ada", "ben")),
    )
    gradebook = book()
    grades = gradebook.find_submission_notebook(*NOTEBOOK, "ada").grades
    assert {(entry.auto_score, entry.needs_manual_grade) for entry in grades} == {(None, True)}
    assert "excused: counts for nothing by Dr. X" in gradebook.find_comment(*COMMENT, "ada").comment
    ada, ben = read_gradebook(course, url)
    assert (ada.is_excused, ada.not_graded, ada.max_score) == (True, (), 0)
    assert (ben.is_excused, ben.score) == (False, 4)


def test_the_gradebook_is_read_back_with_manual_scores_and_late_penalties(tiny, url, book):
    write(tiny, url, result("ben"), result("ada", 1))
    edited = book()
    edited.find_grade(*VALUES, "ben").manual_score = 0.5
    edited.find_submission_notebook(*NOTEBOOK, "ada").late_submission_penalty = 1.5
    edited.db.commit()
    results = read_gradebook(tiny, url)
    assert [(r.student, r.score, r.max_score) for r in results] == [
        ("ada", 2.5, 4),
        ("ben", 3.5, 4),
    ]
    failed = [(c.id, c.score) for c in results[1].exercises[0].checks if c.outcome != "passed"]
    assert failed == [("running_mean-values", 0.5)]


DUE = "    title: Averages\n    due: 2026-03-01 09:00\n    late: {per_day: 50%}\n"
HANDED_IN = HandedIn(source="timestamp.txt", time=datetime(2026, 3, 1, 20, tzinfo=UTC))


def counted_in(folder: Path, student: str) -> tuple[Course, Result]:
    """Read the course anew, and return what a late hand-in with full points counts there."""
    course = load_course(folder)
    late = result(student, 1).model_copy(update={"handed_in": HANDED_IN})
    return course, final(late, Decisions.of_course(course))


def grade(folder: Path, url: str, *students: str) -> None:
    for student in students:
        course, counted = counted_in(folder, student)
        write(course, url, counted)


def points_in(book: Gradebook) -> dict[str, float]:
    """What nbgrader's own pages and its export count."""
    return {
        submission.student.id: submission.score - submission.late_submission_penalty
        for submission in book.assignment_submissions("averages")
    }


def test_a_due_date_that_is_taken_out_takes_its_penalty_with_it(
    tiny_copy: Path, url: str, book
) -> None:
    yaml = tiny_copy / "course.yaml"
    undated = yaml.read_text()
    grade(tiny_copy, url, "ada", "ben")
    yaml.write_text(undated.replace("    title: Averages\n", DUE) + "\ntime_zone: UTC\n")
    grade(tiny_copy, url, "ada", "ben")
    assert points_in(book()) == {"ada": 2, "ben": 2}
    assert "1 day late" in book().find_comment(*COMMENT, "ada").comment
    yaml.write_text(undated)
    for _ in range(2):
        grade(tiny_copy, url, "ada")
        assert points_in(book()) == {"ada": 4, "ben": 2}, "whoever is not written is as before"
        assert "late" not in book().find_comment(*COMMENT, "ada").comment
        assert "1 day late" in book().find_comment(*COMMENT, "ben").comment
        assert book().find_assignment("averages").duedate is None, (
            "nbgrader autograde would take points for it"
        )
    grade(tiny_copy, url, "ben")
    assert points_in(book()) == {"ada": 4, "ben": 4}


def test_a_penalty_of_nbgraders_own_due_date_stays(tiny_copy: Path, url: str, book) -> None:
    yaml = tiny_copy / "course.yaml"
    undated = yaml.read_text()
    yaml.write_text(undated.replace("    title: Averages\n", DUE) + "\ntime_zone: UTC\n")
    grade(tiny_copy, url, "ada")
    yaml.write_text(undated)
    grade(tiny_copy, url, "ada")
    edited = book()
    edited.update_or_create_assignment("averages", duedate="2026-03-01 08:00:00 UTC")
    # as nbgrader autograde enters it
    edited.find_submission_notebook(*NOTEBOOK, "ada").late_submission_penalty = 1.5
    edited.db.commit()
    grade(tiny_copy, url, "ada")
    assert points_in(book()) == {"ada": 2.5}
    assert book().find_assignment("averages").duedate == datetime(2026, 3, 1, 8)


@pytest.mark.parametrize(
    ("column", "points"), [("manual_score", float("inf")), ("extra_credit", 1e308)]
)
@pytest.mark.parametrize(
    "use",
    [read_gradebook, lambda course, url: write(course, url, result("ada", 1))],
    ids=["export", "grade"],
)
def test_a_score_by_hand_that_is_no_number_of_points_is_one_sentence(
    tiny, tmp_path, new_file, use, points, column
):
    url = f"sqlite:///{shutil.copy(new_file, tmp_path)}"
    write(tiny, url, result("ada"))
    with closing(open_gradebook(url)) as edited:
        setattr(edited.find_grade(*VALUES, "ada"), column, points)
        edited.db.commit()
    with pytest.raises(
        CourseFault, match=r"of ada in 01_running_mean, cell running_mean-values, is "
    ) as raised:
        use(tiny, url)
    assert (
        f"{points!r}, which is no number of points. Next: enter another one in formgrader"
        in str(raised.value)
    )
    with closing(open_gradebook(url)) as book:
        assert book.find_grade(*VALUES, "ada").auto_score == 0  # as it was


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("gradebook.db", "Could not parse"),
        ("sqlite:////nowhere/at/all/gradebook.db", "unable to open database file"),
        ("postgresql://nobody@127.0.0.1:1/none", "Connection refused|connection failed"),
        ("oracle://somewhere/none", "No module named|Can't load plugin"),
    ],
)
def test_a_database_that_cannot_be_opened_is_one_sentence_and_a_next_step(
    tiny: Course, bad: str, says: str
) -> None:
    with pytest.raises(CourseFault, match=says) as raised:
        write(tiny, bad)
    assert str(raised.value).endswith("Next: check the URL, such as sqlite:///gradebook.db")
    assert len(str(raised.value).splitlines()) == 1


def cell(name: str, points: float, *checks: str) -> KnownCell:
    return KnownCell(name, "", is_solution=False, points=points, checksum="", checks=checks)


CELLS = [cell("shape", 1, "shape"), cell("values", 3, "split", "merge"), cell("visible", 0)]


def exercise(score: float, *adjustments: Adjustment, excused: bool = False) -> ExerciseResult:
    """1 of 1, 1 of 1, 0 of 2."""
    checks = make.check("shape", 1), make.check("split", 1), make.check("merge", 0, 2)
    return make.exercise("dance", *checks, score=score, adjustments=adjustments, excused=excused)


def result_with_score(exercise_result: ExerciseResult, score: float, most: float) -> Result:
    return make.result("ada", exercise_result, assignment="heads", score=score, max_score=most)


LATE = Adjustment(rule="late", words="late", before=2, after=1.6)
BY_HAND = Adjustment(rule="score", words="by hand", before=2, after=3)


@pytest.mark.parametrize(
    ("own", "scores", "late"),
    [
        pytest.param(exercise(2), [1, 1, 0], 0, id="what was found"),
        pytest.param(exercise(1.6, LATE), [1, 1, 0], 0.2, id="late: before the penalty"),
        pytest.param(
            exercise(3, BY_HAND), [0.75, 2.25, 0], 0, id="by hand: shared by the cells' points"
        ),
        pytest.param(
            exercise(1.6, LATE, excused=True), [0.5, 1.5, 0], 0, id="excused: the others' share"
        ),
    ],
)
def test_cells_add_up_to_what_counts(own: ExerciseResult, scores: list[float], late: float) -> None:
    assignment_result = (
        result_with_score(own, 5, 10) if own.excused else result_with_score(own, own.score, 4)
    )
    assert cell_scores(own, assignment_result, CELLS) == pytest.approx(scores)
    assert late_share(own) == pytest.approx(late)
