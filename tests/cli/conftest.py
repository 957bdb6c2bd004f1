"""What tests of commands share: a folder as a student has it."""

import shutil
from pathlib import Path

import pytest

from manyheads.box.without_namespaces import ProcessBox
from tests.make import TINY


def one_line_of(text: str) -> str:
    """Return a text with a single blank in place of each line break and run of blanks."""
    return " ".join(text.split())


@pytest.fixture
def student_copy(tmp_path: Path) -> Path:
    """A folder as a student has it: course.yaml and exercises/, nothing else."""
    folder = tmp_path / "mine"
    shutil.copytree(TINY / "exercises", folder / "exercises")
    shutil.copy(TINY / "course.yaml", folder)
    return folder


@pytest.fixture
def in_this_process(monkeypatch):
    """An attempt of a command in this process, which has computed, must not be forked from it."""
    monkeypatch.setattr(
        "manyheads.box.without_namespaces.open_own_box", lambda meta=False: ProcessBox()
    )


@pytest.fixture
def student_folder(student_copy, in_this_process):
    """The student's folder, for a command that runs in this process."""
    return student_copy
