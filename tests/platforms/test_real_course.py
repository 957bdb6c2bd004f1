"""The real course: nbgrader releases it to the byte."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.make import REPOSITORY
from tests.platforms.nbgrader_class import copy_for_nbgrader

pytestmark = pytest.mark.journey


@pytest.mark.parametrize("assignment", ["multi_head_attention", "attention_in_practice"])
def test_nbgrader_releases_every_file_to_the_byte(tmp_path: Path, nbgrader: Callable, assignment: str) -> None:
    """Recordings too: `nbgrader generate_assignment` once took recordings away, for it empties exercises/."""
    course = copy_for_nbgrader(REPOSITORY, tmp_path / "course")
    log = nbgrader(course, "generate_assignment", assignment, "--force").stderr
    theirs, ours = (root / "exercises" / assignment for root in (course, REPOSITORY))
    expected = sorted(p.relative_to(ours) for p in ours.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    assert sorted(path.relative_to(theirs) for path in theirs.rglob("*") if path.is_file()) == expected
    assert {"fingerprints", "figures"} <= {path.parent.name for path in expected}
    for path in expected:
        assert (theirs / path).read_bytes() == (ours / path).read_bytes(), path
    # What is recorded and current was once recorded again, for three minutes and without a word, in every fresh clone.
    assert "recording" not in log
