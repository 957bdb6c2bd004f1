"""Copy a course without what a run leaves behind, or is about to take away."""

from __future__ import annotations

import shutil
from pathlib import Path

# A box of another test that is proved at this moment has its canary in the course's folder.
NOT_OF_THE_COURSE = shutil.ignore_patterns("__pycache__", ".course", ".git", ".canary-*")


def copy_course(source: Path, target: Path) -> Path:
    """A course of one's own, to write to."""
    return shutil.copytree(source, target, ignore=NOT_OF_THE_COURSE)


def with_last_mean(folder: Path) -> Path:
    """Add a second exercise to a copy of the tiny course: the first one under another name, not released."""
    for first in (
        "solutions/averages/01_running_mean.py",
        "exercises/averages/01_running_mean.py",
        "grader/checks/test_running_mean.py",
        "grader/misconceptions/running_mean.py",
    ):
        text = (folder / first).read_text(encoding="utf-8").replace("running_mean", "last_mean")
        (folder / first.replace("01_running", "02_last").replace("running", "last")).write_text(text, encoding="utf-8")
    course = folder / "course.yaml"
    text = course.read_text(encoding="utf-8")
    row = text[text.index("      - id: running_mean") :]
    course.write_text(text + row.replace("running", "last"), encoding="utf-8")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its path there, without what git and Python keep."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and not {".git", "__pycache__"} & {*p.parts})
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}
