"""The real course: nbgrader releases it to the byte, and both ways grade it alike."""

import shutil
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from manyheads.authoring.index import for_students
from manyheads.course import Course, load_course

pytestmark = pytest.mark.journey

ASSIGNMENT = "multi_head_attention"
HANDED_IN = {
    ASSIGNMENT: {
        "chen": ("01_attention_scores.ipynb", "04_reshape_dance.ipynb"),
        "nils": ("04_reshape_dance.py", "07_fused_qkv.py"),
    },
    "attention_in_practice": {"goran": ("04_kv_cache.py", "05_sliding_window.py"), "kofi": ("03_rotary.ipynb",)},
}
CELLS = """
    select assignment.name, submitted_assignment.student_id, base_cell.name, grade.auto_score
    from grade join base_cell on grade.cell_id = base_cell.id
    join submitted_notebook on grade.notebook_id = submitted_notebook.id
    join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
    join assignment on submitted_assignment.assignment_id = assignment.id order by 1, 2, 3
"""


@pytest.fixture(scope="module")
def course(once: Callable, for_nbgrader: Callable, nbgrader: Callable, repository: Path) -> Course:
    """A copy of the course with a few submissions, graded by `course grade`, then by nbgrader on the same gradebook."""

    def make(folder: Path) -> None:
        for_nbgrader(repository, folder)
        for assignment, students in HANDED_IN.items():
            for student, names in students.items():
                there = folder / "submitted" / student / assignment
                there.mkdir(parents=True)
                for name in names:
                    shutil.copy(repository / "examples" / "submitted" / student / assignment / name, there)
        command = [sys.executable, "-m", "manyheads", "grade", "submitted", "--seed", "0"]
        command += ["--gradebook", "sqlite:///gradebook.db"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shutil.copy(folder / "gradebook.db", folder / "ours.db")
        with closing(sqlite3.connect(folder / "gradebook.db")) as book:
            book.execute("update grade set auto_score = null")
            book.commit()
        for assignment in HANDED_IN:
            (folder / f"{assignment}.log").write_text(
                nbgrader(folder, "generate_assignment", assignment, "--force").stderr
            )
            nbgrader(folder, "autograde", assignment)

    return load_course(once("real_course", make))


@pytest.mark.parametrize("assignment", HANDED_IN)
def test_nbgrader_releases_every_file_to_the_byte(course: Course, repository: Path, assignment: str) -> None:
    """Recordings too: `nbgrader generate_assignment` once took recordings away, for it empties exercises/."""
    theirs, ours = (root / "exercises" / assignment for root in (course.root, repository))
    expected = sorted(p.relative_to(ours) for p in ours.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    assert sorted(path.relative_to(theirs) for path in theirs.rglob("*") if path.is_file()) == expected
    assert {"fingerprints", "figures"} <= {path.parent.name for path in expected}
    for path in expected:
        assert (theirs / path).read_bytes() == (ours / path).read_bytes(), path
    # What is recorded and current was once recorded again, for three minutes and without a word, in every fresh clone.
    assert "recording" not in (course.root / f"{assignment}.log").read_text()


def test_recordings_are_nobodys_feedback(course: Course) -> None:
    recorded = {path.name for each in course.exercises for path in for_students(each) if path.suffix == ".safetensors"}
    found = [path for path in (course.root / "autograded").rglob("*") if path.is_file()]
    assert found
    assert [path for path in found if path.name in recorded] == []


def test_nbgrader_goes_on_from_our_gradebook_and_gives_every_cell_the_same_score(course: Course) -> None:
    found = []
    for name in ("gradebook.db", "ours.db"):
        with closing(sqlite3.connect(course.root / name)) as book:
            found.append(book.execute(CELLS).fetchall())
    assert found[0] == found[1]
    earned: dict[tuple[str, str], float] = defaultdict(float)
    for assignment, student, _, score in found[0]:
        earned[assignment, student] += score
    assert earned[ASSIGNMENT, "chen"] == 11
    assert 0 < earned[ASSIGNMENT, "nils"] < 12  # something for the two ways to differ in
    assert 0 < earned["attention_in_practice", "goran"] < 12
    assert 0 < earned["attention_in_practice", "kofi"] < 6
