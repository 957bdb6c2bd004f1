"""Which attempts are compared: those that somebody wrote, as text."""

from __future__ import annotations

import shutil
from pathlib import Path

import jupytext
import pytest

from manyheads.course import Assignment, Course, CourseError, Exercise, load_course
from manyheads.platforms.compare50 import attempts_of, stub_text
from manyheads.submission import find_submissions

MINE = "import torch\n\n\ndef running_mean(x):\n    return x.cumsum(0)\n"


@pytest.fixture
def submitted(tmp_path: Path) -> Path:
    """A folder to hand in to."""
    return tmp_path / "submitted"


def hand_in(submitted: Path, student: str, name: str, text: str) -> None:
    folder = submitted / student / "averages"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def test_scripts_and_notebooks_are_read_as_code(
    tiny: Course, averages: Assignment, running_mean: Exercise, submitted: Path
) -> None:
    hand_in(submitted, "ada", "01_running_mean.py", MINE)
    notebook = jupytext.writes(jupytext.reads(MINE, fmt="py:percent"), fmt="ipynb")
    hand_in(submitted, "ben", "01_running_mean.ipynb", notebook)
    found = attempts_of(tiny, running_mean, find_submissions(tiny, submitted)[0])
    assert list(found) == ["ada", "ben"]
    assert found["ada"] == MINE
    assert "return x.cumsum(0)" in found["ben"]
    assert "cells" not in found["ben"]


def test_stubs_missing_files_and_what_cannot_be_read_are_left_out(
    tiny: Course, averages: Assignment, running_mean: Exercise, submitted: Path
) -> None:
    stub = stub_text(running_mean)
    hand_in(submitted, "stub", "01_running_mean.py", stub + "\n# I shall begin tomorrow\n")
    hand_in(submitted, "missing", "readme.txt", "")
    hand_in(submitted, "nul", "01_running_mean.py", "\0")
    hand_in(submitted, "ada", "01_running_mean.py", MINE)
    assert list(attempts_of(tiny, running_mean, find_submissions(tiny, submitted)[0])) == ["ada"]


def test_a_course_without_its_stubs_says_what_to_do(tiny_copy: Path) -> None:
    shutil.rmtree(tiny_copy / "exercises")
    course = load_course(tiny_copy)
    assignment = course.assignments[0]
    with pytest.raises(CourseError, match=r"01_running_mean\.py is missing\. Next: git checkout .* course release"):
        stub_text(assignment.exercises[0])
