"""What the tests of the real course share: the course, and what both sides say of attempts at
it.
"""

from pathlib import Path

import pytest

from manyheads.course import Course, load_course
from tests.diagnosis.both_sides import sides  # noqa: F401


@pytest.fixture(scope="session")
def course(repository: Path) -> Course:
    """The real course."""
    return load_course(repository)
