"""The real course: nbgrader releases it to the byte, both ways grade it alike, and its notebooks run in a kernel."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import nbformat
import pytest
from jupytext import read as read_script
from nbclient import NotebookClient

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


@pytest.fixture
def student_alone(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a student has: one assignment's folder, and the package without anything hidden."""
    no_secret = shutil.ignore_patterns("__pycache__")
    shutil.copytree(repository / "manyheads", tmp_path / "package" / "manyheads", ignore=no_secret)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "package"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    return Path(shutil.copytree(repository / "exercises" / ASSIGNMENT, tmp_path / ASSIGNMENT))


def answers(repository: Path) -> list[str]:
    """The cells of the reference that a student writes."""
    cells = read_script(repository / "solutions" / ASSIGNMENT / "04_reshape_dance.py").cells
    return [str(cell.source) for cell in cells if "solution" in cell.metadata.get("tags", [])]


def run_top_to_bottom(folder: Path, sources: list[str]) -> nbformat.NotebookNode:
    """The notebook with these answers, as a kernel leaves it."""
    notebook = nbformat.read(folder / "04_reshape_dance.ipynb", as_version=4)
    places = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    for cell, source in zip(places, sources, strict=True):
        cell.source = source
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return notebook


def test_a_right_notebook_runs_top_to_bottom_with_the_students_release_alone(student_alone, repository):
    notebook = run_top_to_bottom(student_alone, answers(repository))
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [o.ename for o in outputs if o.output_type == "error"] == []
    assert "✓ 04 reshape dance" in "".join(o.text for o in outputs if o.output_type == "stream")


def test_the_visible_checks_of_a_wrong_notebook_name_the_misconception(student_alone: Path, repository: Path) -> None:
    wrong = answers(repository)
    wrong[0] = "def split_heads(x, n_head):\n    B, T, C = x.shape\n    return x.view(B, n_head, T, C // n_head)\n"
    notebook = run_top_to_bottom(student_alone, wrong)
    last = next(cell for cell in notebook.cells if "check_notebook(" in cell.source)
    (error,) = last.outputs
    assert error.ename == "VisibleCheckFailed"
    assert "You viewed straight to (B, n_head, T, head_dim)." in " ".join(error.evalue.split())
    assert "hint: " in error.evalue
    assert error.traceback == error.evalue.splitlines()  # the report, and none of our own stack
