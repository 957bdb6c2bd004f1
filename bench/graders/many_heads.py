"""This project: `course grade`, isolation level namespaces."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

from .base import Scores, each


class ManyHeads:
    """Our own grader, on a course with one assignment of one exercise."""

    name = "course grade"
    programs = Path(sys.executable).parent

    def __init__(
        self, lay_out: Callable[[Path], None], assignment: str, exercise: str, jobs: int | None = None
    ) -> None:
        """`lay_out` writes the course into a folder that is not there yet; `jobs` None: as the command decides."""
        self._lay_out, self._assignment, self._file = lay_out, assignment, f"01_{exercise}.py"
        self._options = [] if jobs is None else ["--jobs", str(jobs)]

    def version(self) -> str:
        """Name and version."""
        return f"manyheads {version('manyheads')}"

    def prepare(self, folder: Path) -> None:
        """The course."""
        self._lay_out(folder / "course")

    def hand_in(self, folder: Path, student: str, files: Mapping[str, str]) -> None:
        """A script."""
        own = folder / "submitted" / student / self._assignment
        own.mkdir(parents=True)
        for name, text in files.items():
            (own / (self._file if name == "attempt.py" else name)).write_text(text, encoding="utf-8")

    def command(self, folder: Path) -> list[str]:
        """One command for the class."""
        grade = [sys.executable, "-m", "manyheads", "grade", "submitted"]
        return [*grade, "--course", "course", "--out", "results", "--seed", "0", *self._options]

    def scores(self, folder: Path, students: Iterable[str]) -> Scores:
        """From the result files."""

        def score(student: str) -> float | None:
            path = folder / "results" / student / f"{self._assignment}.json"
            return float(json.loads(path.read_text())["exercises"][0]["score"]) if path.exists() else None

        return each(students, score)
