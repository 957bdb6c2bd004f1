"""Fixtures for tests of the `course` commands: a student's folder of the tiny course."""

import shutil
from pathlib import Path

import pytest

from manyheads.box.without_namespaces import ProcessBox
from tests.make import TINY


def one_line_of(text: str) -> str:
    """Return the text on one line, with each run of whitespace replaced by one space."""
    return " ".join(text.split())


@pytest.fixture
def student_copy(tmp_path: Path) -> Path:
    """Return a student's folder: course.yaml and exercises/, without solutions or checks."""
    folder = tmp_path / "mine"
    shutil.copytree(TINY / "exercises", folder / "exercises")
    shutil.copy(TINY / "course.yaml", folder)
    return folder


@pytest.fixture
def attempts_in_new_processes(monkeypatch):
    """Run attempts in fresh processes: torch has already computed in this one, so it must not
    fork.
    """
    monkeypatch.setattr(
        "manyheads.box.without_namespaces.open_own_box", lambda meta=False: ProcessBox()
    )


@pytest.fixture
def student_copy_in_process(student_copy, attempts_in_new_processes):
    """Return a student's folder for commands that run in this process."""
    return student_copy
