"""Copy a course without what a run leaves behind, or is about to take away."""

from __future__ import annotations

import shutil
from pathlib import Path

# A box of another test that is proved at this moment has its canary in the course's folder.
NOT_OF_THE_COURSE = shutil.ignore_patterns("__pycache__", ".course", ".git", ".canary-*")


def copy_course(source: Path, target: Path) -> Path:
    """A course of one's own, to write to."""
    return shutil.copytree(source, target, ignore=NOT_OF_THE_COURSE)
