"""A school for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflows.hosted.service import Service
from tests.workflows.school import School


@pytest.fixture
def school(tmp_path: Path) -> Iterator[School]:
    """A class repository and a private course, on a service of their own."""
    with Service(tmp_path / "repositories") as service:
        folder = tmp_path / "school"
        folder.mkdir()
        yield School(folder, service).found()
