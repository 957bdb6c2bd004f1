"""The same class through `course grade --gradebook`, killed in the middle and run again: what autograde gives, once."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.warm import run_warm

pytestmark = pytest.mark.journey

STUDENTS = "select count(*) from submitted_assignment"
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
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as book:
        return book.execute(query).fetchall()


def counted(path: Path) -> int:
    try:
        return int(rows(path, STUDENTS)[0][0])
    except sqlite3.OperationalError:  # not there yet, without tables yet, or being written to
        return 0


@pytest.fixture(scope="module")
def killed(once: Callable, trap_class: Path) -> Path:
    """The folder with `after_the_kill.db` and `complete.db`."""

    def make(folder: Path) -> None:
        course = shutil.copytree(trap_class, folder / "course", ignore=shutil.ignore_patterns("gradebook.db"))
        book = folder / "gradebook.db"
        command = [sys.executable, "-m", "manyheads", "grade", "submitted", "--out", str(folder / "results")]
        command += ["--jobs", "1", "--seed", "0", "--gradebook", f"sqlite:///{book}"]
        quiet = {"cwd": course, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        run = subprocess.Popen(command, start_new_session=True, **quiet)
        deadline = time.monotonic() + 120
        while counted(book) < 3 and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        assert run.poll() is None, f"it ended before it could be killed: {run.communicate()[1]}"
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        with closing(sqlite3.connect(book)) as torn, closing(sqlite3.connect(folder / "after_the_kill.db")) as copy:
            torn.backup(copy)
        again = run_warm("manyheads", command[3:], course, os.environ)
        assert again.returncode == 1, again.stderr  # some lie beside the exercises, and are named
        book.rename(folder / "complete.db")

    return once("killed", make)


def test_a_killed_run_leaves_whole_students_only(killed: Path, points: dict[str, float]) -> None:
    left = killed / "after_the_kill.db"
    assert 3 <= counted(left) < len(points)
    assert [row for row in rows(left, CELLS) if row[2] is None or row[3]] == []
    assert rows(left, "pragma integrity_check") == [("ok",)]


def test_the_next_run_completes_it_and_doubles_nothing(killed: Path, points: dict[str, float]) -> None:
    assert counted(killed / "complete.db") == len(points)
    ids = [row[:2] for row in rows(killed / "complete.db", CELLS)]
    assert len(set(ids)) == len(ids) == 5 * len(points)


def test_both_ways_give_every_cell_of_every_student_the_same_score(killed: Path, trap_class: Path) -> None:
    assert rows(killed / "complete.db", CELLS) == rows(trap_class / "gradebook.db", CELLS)


def test_both_ways_leave_the_same_comments(killed: Path, trap_class: Path) -> None:
    assert rows(killed / "complete.db", COMMENTS) == rows(trap_class / "gradebook.db", COMMENTS)
