"""What tests of commands share: a folder as a student has it."""

import shutil
from pathlib import Path

import pytest

from manyheads.box.without_namespaces import ProcessBox
from tests.make import TINY


@pytest.fixture
def student_copy(tmp_path: Path) -> Path:
    """A folder as a student has it: course.yaml and exercises/, nothing else."""
    folder = tmp_path / "mine"
    shutil.copytree(TINY / "exercises", folder / "exercises")
    shutil.copy(TINY / "course.yaml", folder)
    return folder


@pytest.fixture
def here(student_copy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The student's folder, for a command that runs in this process: which has computed, so it may
    not be forked.
    """
    monkeypatch.setattr(
        "manyheads.box.without_namespaces.open_own_box", lambda meta=False: ProcessBox()
    )
    monkeypatch.chdir(student_copy)
    return student_copy
