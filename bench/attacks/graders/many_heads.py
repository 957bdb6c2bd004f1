"""This project: `course grade` on the tiny course, isolation level namespaces."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from ..exercise import SECRET, TINY_COURSE

PLACES = (
    "solutions/averages/01_running_mean.py",
    "grader/hidden/checks/test_running_mean.py",
    "grader/hidden/misconceptions/running_mean.py",
)


class ManyHeads:
    """Our own grader."""

    name = "course grade"
    programs = Path(sys.executable).parent

    def version(self) -> str:
        """Name and version."""
        return f"manyheads {version('manyheads')}"

    def prepare(self, folder: Path) -> None:
        """A copy of the tiny course, with the secret in all that is hidden."""
        course = folder / "course"
        shutil.copytree(TINY_COURSE, course, ignore=shutil.ignore_patterns("__pycache__", ".course"))
        for place in PLACES:
            with (course / place).open("a", encoding="utf-8") as file:
                file.write(f"\nSECRET = '{SECRET}'\n")

    def hand_in(self, folder: Path, student: str, files: Mapping[str, str]) -> None:
        """A script."""
        own = folder / "submitted" / student / "averages"
        own.mkdir(parents=True)
        for name, text in files.items():
            (own / ("01_running_mean.py" if name == "attempt.py" else name)).write_text(text, encoding="utf-8")

    def command(self, folder: Path) -> list[str]:
        """One command for the class."""
        grade = [sys.executable, "-m", "grader", "grade", "submitted"]
        return [*grade, "--course", "course", "--out", "results", "--jobs", "1"]

    def score(self, folder: Path, student: str) -> float | None:
        """From the result file."""
        path = folder / "results" / student / "averages.json"
        return float(json.loads(path.read_text())["exercises"][0]["score"]) if path.exists() else None
