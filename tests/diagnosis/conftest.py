"""What a student's machine and the grading say of a text."""

import pytest

from manyheads.box.connection import Box
from manyheads.course import Course
from tests.diagnosis.both_sides import Sides


@pytest.fixture(scope="session")
def sides(box: Box, tiny: Course) -> Sides:
    """Both sides."""
    return Sides(box, tiny)
