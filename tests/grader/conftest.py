"""What the tests of the real course share: the course, and one judge, for each loads the tables that it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.box.level import Box
from manyheads.course import Course, load_course
from manyheads.judge.grade_submission import Judge, Settings


@pytest.fixture(scope="session")
def course(repository: Path) -> Course:
    """The real course."""
    return load_course(repository)


@pytest.fixture(scope="session")
def judge(course: Course, box: Box) -> Judge:
    """A judge of the real course, which does not search for the line that is wrong: that takes longer than all else."""
    return Judge(course, box, Settings(b"names", lines=False))
