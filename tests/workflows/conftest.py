"""A school for each test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflows.hosted.service import Service
from tests.workflows.school import REPOSITORY, School, found


@pytest.fixture(scope="session")
def founded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Both repositories as they are at first, and the course's commit: to copy from."""
    folder = tmp_path_factory.mktemp("founded")
    return folder / "repositories", found(folder)


@pytest.fixture
def real_school(tmp_path: Path) -> Iterator[School]:
    """The same of the real course, with all its assignments."""
    commit = found(tmp_path, REPOSITORY)
    with Service(tmp_path / "repositories") as service:
        folder = tmp_path / "school"
        folder.mkdir()
        yield School(folder, service, commit)


@pytest.fixture
def school(founded: tuple[Path, str], tmp_path: Path) -> Iterator[School]:
    """A class repository and a private course, on a service of their own."""
    shutil.copytree(founded[0], tmp_path / "repositories")
    with Service(tmp_path / "repositories") as service:
        folder = tmp_path / "school"
        folder.mkdir()
        yield School(folder, service, founded[1])
