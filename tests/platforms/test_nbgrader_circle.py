"""The whole circle of an assignment with nbgrader's own commands, also of one that is not this course's, and what it hands on."""

import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from manyheads.course import Course, load_course
from manyheads.platforms.nbgrader_gradebook import GradebookWriter, read_gradebook
from manyheads.result import write_result
from tests import make
from tests.make import REPOSITORY, TINY, content
from tests.platforms.nbgrader_class import RIGHT, STEM, WRONG, copy_for_nbgrader, filled

pytestmark = pytest.mark.journey

TIME = "2026-11-23 12:00:00 UTC"
SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'
STUDENT = "wrong_notebook"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_for_nbgrader(TINY, tmp_path_factory.mktemp("course"))


def test_feedback_comes_back_to_the_student(course, tmp_path, nbgrader, run_course):
    """First the pages of nbgrader's own command, then those of `course feedback`. Beside it lies what another account left."""
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    root = f"--Exchange.root={exchange}"
    mine = tmp_path / "student"
    mine.mkdir()
    nbgrader(course, "generate_assignment", "averages", "--force")
    nbgrader(course, "release_assignment", "averages", root)
    assert "manyheads averages" in nbgrader(course, "list", root).stderr
    nbgrader(mine, "fetch_assignment", "averages", "--course", "manyheads", root)
    (mine / "averages" / f"{STEM}.ipynb").write_text(json.dumps(filled(WRONG)))
    nbgrader(mine, "submit", "averages", "--course", "manyheads", root)
    linking = exchange / "manyheads" / "inbound" / f"linking+averages+{TIME}+abc"
    linking.mkdir()
    (linking / f"{STEM}.py").symlink_to(course / "solutions" / "averages" / f"{STEM}.py")
    (linking / "hidden").symlink_to(course / "grader")
    os.mkfifo(linking / "pipe")
    (linking / "timestamp.txt").write_text("2020-01-01 00:00:00 UTC")  # its owner may say what they like
    nbgrader(course, "collect", "averages", root)
    assert (
        (course / "submitted" / "linking" / "averages" / "timestamp.txt").read_text().startswith("2026-11-23 12:00:00")
    )
    nbgrader(course, "autograde", "averages")
    assert not [path for path in (course / "autograded").rglob("*") if path.is_symlink() or path.suffix == ".py"]
    scores = {result.student: result.score for result in read_gradebook(load_course(course), book_of(course))}
    assert scores.pop("linking") == 0
    assert list(scores.values()) == [2]
    nbgrader(course, "generate_feedback", "averages")
    nbgrader(course, "release_feedback", "averages", root)
    nbgrader(mine, "fetch_feedback", "averages", "--course", "manyheads", root)
    (page,) = (mine / "averages" / "feedback").rglob(f"{STEM}.html")
    assert "You divided by the length of x everywhere." in page.read_text(encoding="utf-8")
    (student,) = scores
    exercise = make.exercise("running_mean", score=1, max_score=4, note="A page of our own.")
    write_result(make.result(student, exercise), course / "results")
    assert run_course("feedback", "results", "--out", ".", cwd=course).returncode == 0
    shutil.rmtree(mine / "averages" / "feedback")
    nbgrader(course, "release_feedback", "averages", root)
    nbgrader(mine, "fetch_feedback", "averages", "--course", "manyheads", root)
    (page,) = (mine / "averages" / "feedback").rglob(f"{STEM}.html")
    assert "A page of our own." in page.read_text(encoding="utf-8")


def book_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'gradebook.db'}"


def test_an_assignment_of_nbgraders_own_goes_nbgraders_own_way(course, tmp_path, nbgrader):
    """The one that `nbgrader quickstart` makes, in the folder of this course; one of its notebooks, for a kernel starts
    for each.
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
    whole = checks.read_text(encoding="utf-8")
    folder = course / "submitted" / "ada" / "averages"
    folder.mkdir(parents=True)
    (folder / f"{STEM}.ipynb").write_text(json.dumps(filled(RIGHT)))
    nbgrader(course, "generate_assignment", "averages", "--force")
    checks.write_text(whole.replace("x = draw(draw.integer(5, 9))", "x = 1 / 0"), encoding="utf-8")
    done = nbgrader(course, "autograde", "averages", check=False)
    assert done.returncode != 0
    assert (
        "a fault of the grader's own: values: ZeroDivisionError: division by zero. Next: course verify" in done.stderr
    )
    assert "not graded: ada: running_mean. formgrader shows" in done.stderr
    assert read_gradebook(load_course(course), book_of(course))[0].score is None
    for names, wanted in (
        (("def test_values(", "def values("), "its checks give 3 points, course.yaml says 4. Nobody is graded."),
        (("points=1", "points=0.5", "points=1", "points=1.5"), "has other points than its checks give now"),
    ):
        text = whole
        for old, new in zip(names[::2], names[1::2], strict=True):
            text = text[: text.index(old)] + new + text[text.index(old) + len(old) :]
        checks.write_text(text, encoding="utf-8")
        done = nbgrader(course, "autograde", "averages", "--force", check=False)
        assert done.returncode != 0
        assert wanted in done.stderr
    checks.write_text(whole, encoding="utf-8")
    (course / "submitted" / "what?").mkdir()
    shutil.copytree(folder, course / "submitted" / "what?" / "averages")
    done = nbgrader(course, "autograde", "averages", "--force", check=False)
    assert "'what?': nbgrader reads *, ? and [ as a pattern" in done.stderr
    shutil.rmtree(course / "submitted" / "what?")
    nbgrader(course, "autograde", "averages", "--force")
    assert read_gradebook(load_course(course), book_of(course))[0].score == 4


@pytest.mark.parametrize("assignment", ["multi_head_attention", "attention_in_practice"])
def test_nbgrader_releases_every_file_of_the_real_course_to_the_byte(tmp_path: Path, nbgrader, assignment: str) -> None:
    """Recordings too: `nbgrader generate_assignment` once took recordings away, for it empties exercises/."""
    course = copy_for_nbgrader(REPOSITORY, tmp_path / "course")
    log = nbgrader(course, "generate_assignment", assignment, "--force").stderr
    theirs, ours = (root / "exercises" / assignment for root in (course, REPOSITORY))
    expected = sorted(p.relative_to(ours) for p in ours.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    assert sorted(path.relative_to(theirs) for path in theirs.rglob("*") if path.is_file()) == expected
    assert {"fingerprints", "figures"} <= {path.parent.name for path in expected}
    for path in expected:
        assert (theirs / path).read_bytes() == (ours / path).read_bytes(), path
    # What is recorded and current was once recorded again, for three minutes and without a word, in every fresh clone.
    assert "recording" not in log


def test_generate_assignment_writes_the_bytes_that_course_release_writes(trap_class: Path) -> None:
    generated = content(trap_class / "exercises")
    assert generated == content(trap_class / "released")  # which is what `course release` has committed
    names = (f"{STEM}.ipynb", f"{STEM}.py", f"fingerprints/{STEM}.safetensors")
    assert sorted(generated) == [f"averages/{name}" for name in names]


def test_what_an_instructor_put_beside_the_source_stays_and_a_lessons_figure_goes_to_the_feedback(own_class, nbgrader):
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
    "grade_cells": "select name, max_score, base_cell.type from grade_cells join base_cell using (id)",
    "solution_cells": "select name from base_cell where type = 'SolutionCell'",
    "source_cells": "select name, cell_type, locked, source, checksum from source_cell",
    "notebooks": "select name, kernelspec from notebook",
    "assignments": "select name, course_id from assignment",
}


def test_a_gradebook_holds_the_same_cells_whoever_makes_it(trap_class: Path, tiny: Course, tmp_path: Path) -> None:
    with GradebookWriter(tiny, f"sqlite:///{tmp_path / 'ours.db'}"):
        pass
    for name, query in TABLES.items():
        with closing(sqlite3.connect(tmp_path / "ours.db")) as ours:
            mine = sorted(map(with_parsed_json, ours.execute(query)))
        with closing(sqlite3.connect(trap_class / "gradebook.db")) as theirs:
            assert mine == sorted(map(with_parsed_json, theirs.execute(query))), name


def with_parsed_json(row: tuple) -> str:
    return str([json.loads(v) if isinstance(v, str) and v.startswith("{") else v for v in row])


def test_validate_runs_the_visible_checks_and_names_the_misconception(tmp_path, nbgrader, tiny):
    """Of notebooks where a student has them: no configuration, nothing hidden."""
    folder = shutil.copytree(tiny.root / "exercises" / "averages", tmp_path / "mine")
    for name, answer in {"right": RIGHT, "wrong": WRONG}.items():
        (folder / f"{name}.ipynb").write_text(json.dumps(filled(answer)), encoding="utf-8")
    whole = nbgrader(folder, "validate", "right.ipynb", "wrong.ipynb", f"{STEM}.ipynb").stdout
    passed, said, stub = re.split("(?=VALIDATION FAILED)", whole)
    assert passed == "Success! Your notebook passes all the tests.\n"
    assert said.startswith("VALIDATION FAILED ON 1 CELL(S)!")
    assert "averages all that came so far" in said
    assert "You divided by the length of x everywhere." in said
    assert "hint: How many numbers are in the mean at position 0?" in said
    assert "Traceback" not in said + stub


def test_where_the_course_cannot_be_read_nbgrader_does_nothing_rather_than_run_code_without_a_box(own_class, nbgrader):
    with (own_class / "course.yaml").open("a") as file:
        file.write("nonsense: [\n")
    done = nbgrader(own_class, "autograde", "averages", "--force", check=False)
    assert done.returncode == 1
    assert "nothing was done, for nbgrader_config.py cannot prepare nbgrader: " in done.stderr
    assert "course.yaml" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Converting notebook" not in done.stderr
