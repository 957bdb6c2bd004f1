"""What tests of making a course share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def with_median(tiny_copy: Path) -> Path:
    """The folder of a tiny course with a second exercise, not yet released: the first one's files under another name."""
    solutions, hidden = tiny_copy / "solutions" / "averages", tiny_copy / "grader"
    shutil.copy(solutions / "01_running_mean.py", solutions / "02_median.py")
    shutil.copy(hidden / "checks" / "test_running_mean.py", hidden / "checks" / "test_median.py")
    shutil.copy(hidden / "misconceptions" / "running_mean.py", hidden / "misconceptions" / "median.py")
    course = tiny_copy / "course.yaml"
    text = course.read_text(encoding="utf-8")
    row = text[text.index("      - id: running_mean") :]
    course.write_text(text + row.replace("running_mean\n", "median\n", 1), encoding="utf-8")
    return tiny_copy
