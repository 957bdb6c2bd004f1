"""What the tests of the real course share: the course, and what both sides say of attempts at
it.
"""

from pathlib import Path

import pytest

from manyheads.box.connection import Box
from manyheads.course import Course, load_course
from tests.diagnosis.both_sides import Sides


@pytest.fixture(scope="session")
def course(repository: Path) -> Course:
    """The real course."""
    return load_course(repository)


@pytest.fixture(scope="session")
def sides(box: Box, tiny: Course) -> Sides:
    """What a student's machine and the grading say of a text, without a search for the line that is
    wrong.
    """
    return Sides(box, tiny)
