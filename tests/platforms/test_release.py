"""nbgrader's commands on what is released: the bytes of `course release`, and visible checks that really run."""

import json
import logging
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from manyheads.course import Course, load_course
from manyheads.platforms.nbgrader_commands import build_source
from manyheads.platforms.nbgrader_writer import GradebookWriter
from tests.make import content

pytestmark = pytest.mark.journey

STEM = "01_running_mean"
SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'
STUDENT = "wrong_notebook"


def test_generate_assignment_writes_the_bytes_that_course_release_writes(trap_class: Path) -> None:
    generated = content(trap_class / "exercises")
    assert generated == content(trap_class / "released")  # which is what `course release` has committed
    assert sorted(generated) == [
        f"averages/{STEM}.ipynb",
        f"averages/{STEM}.py",
        f"averages/fingerprints/{STEM}.safetensors",
    ]


def test_where_nbgrader_fails_what_was_released_stays(own_class: Path, nbgrader: Callable) -> None:
    before = content(own_class / "exercises")
    nowhere = "--CourseDirectory.db_url=sqlite:////nowhere/gradebook.db"
    failed = nbgrader(own_class, "generate_assignment", "averages", "--force", nowhere, check=False)
    assert failed.returncode != 0
    assert content(own_class / "exercises") == before


def test_what_an_instructor_put_beside_the_source_stays(tiny_copy: Path) -> None:
    folder = tiny_copy / "source" / "averages"
    (folder / "data").mkdir(parents=True)
    for name in ("data/numbers.csv", "02_gone.py"):
        (folder / name).write_text("mine")
    course = load_course(tiny_copy)
    assert build_source(course, course.assignments[0], logging.getLogger()) == folder
    assert (folder / "data" / "numbers.csv").read_text() == "mine"
    assert not (folder / "02_gone.py").exists(), "of an exercise that the course no longer has"


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


@pytest.fixture(scope="module")
def validated(once, nbgrader, fill, tiny, right, wrong):
    """What `nbgrader validate` says of notebooks where a student has them: no configuration, nothing hidden."""

    def make(folder: Path) -> None:
        shutil.copytree(tiny.root / "exercises" / "averages", folder)
        for name, answer in {"right": right, "wrong": wrong}.items():
            (folder / f"{name}.ipynb").write_text(json.dumps(fill(answer)), encoding="utf-8")
        said = nbgrader(folder, "validate", "right.ipynb", "wrong.ipynb", f"{STEM}.ipynb").stdout
        (folder / "said").write_text(said, encoding="utf-8")

    said = (once("validated", make) / "said").read_text(encoding="utf-8")
    return dict(zip(("right", "wrong", "stub"), re.split("(?=VALIDATION FAILED)", said), strict=True))


def test_validate_runs_the_visible_checks_and_names_the_misconception(validated: dict[str, str]) -> None:
    assert validated["right"] == "Success! Your notebook passes all the tests.\n"
    assert "VALIDATION FAILED" in validated["stub"]
    said = validated["wrong"]
    assert said.startswith("VALIDATION FAILED ON 1 CELL(S)!")
    assert "averages all that came so far" in said
    assert "You divided by the length of x everywhere." in said
    assert "hint: How many numbers are in the mean at position 0?" in said
    assert "Traceback" not in said


def test_list_and_db_work(own_class: Path, nbgrader: Callable, tmp_path: Path) -> None:
    exchange = tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    where = f"--Exchange.root={exchange}"
    nbgrader(own_class, "release_assignment", "averages", where)
    assert "manyheads averages" in nbgrader(own_class, "list", where).stderr
    students = nbgrader(own_class, "db", "student", "list").stdout
    assert "right_script" in students


def test_a_lessons_figure_goes_from_its_source_to_the_feedback(own_class: Path, nbgrader: Callable) -> None:
    figure = f"averages/figures/{STEM}.svg"
    (own_class / "solutions" / figure).parent.mkdir()
    (own_class / "solutions" / figure).write_text(SVG)
    nbgrader(own_class, "generate_assignment", "averages", "--force")
    assert (own_class / "exercises" / figure).read_text() == SVG
    nbgrader(own_class, "autograde", "averages", "--student", STUDENT, "--force")
    nbgrader(own_class, "generate_feedback", "averages", "--student", STUDENT, "--force")
    assert (own_class / "feedback" / STUDENT / figure).read_text() == SVG
    (own_class / "solutions" / figure).unlink()
    nbgrader(own_class, "generate_assignment", "averages", "--force")
    assert not (own_class / "exercises" / figure).exists()


def test_where_the_course_cannot_be_read_nbgrader_does_nothing_rather_than_run_code_without_a_box(own_class, nbgrader):
    with (own_class / "course.yaml").open("a") as file:
        file.write("nonsense: [\n")
    done = nbgrader(own_class, "autograde", "averages", "--force", check=False)
    assert done.returncode == 1
    assert "nothing was done, for nbgrader_config.py cannot prepare nbgrader: " in done.stderr
    assert "course.yaml" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Converting notebook" not in done.stderr
