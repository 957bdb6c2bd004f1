"""otter-grader without Docker: `otter run`, a call for each student, with its documented exception-based tests.

`otter grade` runs the same code inside a container for each student, which would hold more than what is measured here.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from textwrap import indent

from ..exercise import CHECKS, SETUP, STUDENTS
from ..run import environment
from ..venvs import call, python_of, version_of
from .base import notebook

GRADE = """\
for student in {students}; do
    mkdir -p results/$student
    "{python}" -m otter run --no-logo -a autograder.zip -o results/$student submitted/$student/running_mean.*
done
"""


class Otter:
    """The newest otter-grader."""

    name = "otter run"

    def __init__(self, cache: Path) -> None:
        """Build its environment under `cache`."""
        self._python = python_of(cache, "otter", "otter-grader[grading]==7.0.0", "ipykernel")
        self.programs = self._python.parent

    def version(self) -> str:
        """Name and version."""
        return f"otter-grader {version_of(self._python, 'otter-grader')}"

    def prepare(self, folder: Path) -> None:
        """One hidden test file with four cases, packed by `otter generate`."""
        (folder / "tests").mkdir()
        (folder / "results").mkdir()
        head = f"OK_FORMAT = False\n\nfrom otter.test_files import test_case\n\nname = 'running_mean'\n\n{SETUP}"
        cases = "".join(
            f"\n\n@test_case(points=1, hidden=True)\ndef test_{name}(running_mean):\n{indent(text, '    ')}"
            for name, text in CHECKS.items()
        )
        (folder / "tests" / "running_mean.py").write_text(head + cases)
        (folder / "grade.sh").write_text(GRADE.format(python=self._python, students=" ".join(STUDENTS)))
        options = ("--no-environment", "--no-requirements")
        call(self._python, "otter", "generate", *options, folder=folder, env=environment(folder, self.programs))

    def hand_in(self, folder: Path, student: str, files: Mapping[str, str]) -> None:
        """A notebook; a zip file where something lies beside it."""
        own = folder / "submitted" / student
        own.mkdir(parents=True)
        text = notebook({"source": files["attempt.py"]})
        beside = {name: text for name, text in files.items() if name != "attempt.py"}
        if not beside:
            (own / "running_mean.ipynb").write_text(text)
            return
        with zipfile.ZipFile(own / "running_mean.zip", "w") as packed:
            for name, content in {"running_mean.ipynb": text, **beside}.items():
                packed.writestr(name, content)

    def command(self, folder: Path) -> list[str]:
        """A loop over the class."""
        return ["sh", "grade.sh"]

    def score(self, folder: Path, student: str) -> float | None:
        """From results.json, as Gradescope would read it."""
        path = folder / "results" / student / "results.json"
        if not path.exists():
            return None
        result = json.loads(path.read_text())
        return float(result.get("score", sum(test.get("score", 0) for test in result["tests"])))
