"""The same class through `course grade --gradebook`: what autograde gives."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.warm import run_warm

pytestmark = pytest.mark.journey

CELLS = """
    select submitted_assignment.student_id, base_cell.name, grade.auto_score, grade.needs_manual_grade
    from grade join base_cell on grade.cell_id = base_cell.id
    join submitted_notebook on grade.notebook_id = submitted_notebook.id
    join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id order by 1, 2
"""
COMMENTS = """
    select submitted_assignment.student_id, base_cell.name, comment.auto_comment
    from comment join base_cell on comment.cell_id = base_cell.id
    join submitted_notebook on comment.notebook_id = submitted_notebook.id
    join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id order by 1, 2
"""


def rows(path: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(path)) as book:
        return book.execute(query).fetchall()


@pytest.fixture(scope="module")
def ours(once: Callable, trap_class: Path) -> Path:
    """The gradebook that `course grade` fills."""

    def make(folder: Path) -> None:
        course = shutil.copytree(trap_class, folder / "course", ignore=shutil.ignore_patterns("gradebook.db"))
        out, book = str(folder / "results"), f"sqlite:///{folder / 'gradebook.db'}"
        command = ["grade", "submitted", "--out", out, "--jobs", "1", "--seed", "0", "--gradebook", book]
        done = run_warm("manyheads", command, course, os.environ)
        assert done.returncode == 1, done.stderr  # some lie beside the exercises, and are named

    return once("both_ways", make) / "gradebook.db"


@pytest.mark.parametrize("query", [CELLS, COMMENTS], ids=["scores", "comments"])
def test_both_ways_give_every_cell_of_every_student_the_same(ours: Path, trap_class: Path, query: str) -> None:
    assert rows(ours, query) == rows(trap_class / "gradebook.db", query)
