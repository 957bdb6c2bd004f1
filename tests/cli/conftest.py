"""What tests of commands share: a folder as a student has it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import TINY


@pytest.fixture
def student_copy(tmp_path: Path) -> Path:
    """A folder as a student has it: course.yaml and exercises/, nothing else."""
    folder = tmp_path / "mine"
    shutil.copytree(TINY / "exercises", folder / "exercises")
    shutil.copy(TINY / "course.yaml", folder)
    return folder
