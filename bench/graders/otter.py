"""otter-grader without Docker: `otter run`, a call for each student, with its documented exception-based tests.

`otter grade` runs the same code inside a container for each student, which would hold more, and cost more, than what is
measured here.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import indent

from ..assignment import Assignment
from ..places import environment
from ..venvs import call, python_of, version_of
from .base import Scores, each, notebook

GRADE = """\
for student in $(ls submitted); do
    mkdir -p results/$student
    "{python}" -m otter run --no-logo -a autograder.zip -o results/$student submitted/$student/{name}.*
done
"""


class Otter:
    """The newest otter-grader."""

    name = "otter run"

    def __init__(self, cache: Path, assignment: Assignment) -> None:
        """Build its environment under `cache`."""
        self._python = python_of(cache, "otter", "otter-grader[grading]==7.0.0", "ipykernel")
        self._assignment = assignment
        self.programs = self._python.parent

    def version(self) -> str:
        """Name and version."""
        return f"otter-grader {version_of(self._python, 'otter-grader')}"

    def prepare(self, folder: Path) -> None:
        """One hidden test file with a case for each check, packed by `otter generate`."""
        (folder / "tests").mkdir(parents=True)
        (folder / "results").mkdir()
        name, setup = self._assignment.name, self._assignment.setup
        head = f"OK_FORMAT = False\n\nfrom otter.test_files import test_case\n\nname = '{name}'\n\n{setup}"
        arguments = ", ".join(self._assignment.functions)
        cases = "".join(
            f"\n\n@test_case(points=1, hidden=True)\ndef test_{check}({arguments}):\n{indent(text, '    ')}"
            for check, text in self._assignment.checks.items()
        )
        (folder / "tests" / f"{name}.py").write_text(head + cases)
        (folder / "grade.sh").write_text(GRADE.format(python=self._python, name=name))
        options = ("--no-environment", "--no-requirements")
        call(self._python, "otter", "generate", *options, folder=folder, env=environment(folder, self.programs))

    def hand_in(self, folder: Path, student: str, files: Mapping[str, str]) -> None:
        """A notebook; a zip file where something lies beside it."""
        own = folder / "submitted" / student
        own.mkdir(parents=True)
        name, text = self._assignment.name, notebook({"source": files["attempt.py"]})
        beside = {name: text for name, text in files.items() if name != "attempt.py"}
        if not beside:
            (own / f"{name}.ipynb").write_text(text)
            return
        with zipfile.ZipFile(own / f"{name}.zip", "w") as packed:
            for member, content in {f"{name}.ipynb": text, **beside}.items():
                packed.writestr(member, content)

    def command(self, folder: Path) -> list[str]:
        """A loop over the class."""
        return ["sh", "grade.sh"]

    def scores(self, folder: Path, students: Iterable[str]) -> Scores:
        """From results.json, as Gradescope would read it."""

        def score(student: str) -> float | None:
            path = folder / "results" / student / "results.json"
            if not path.exists():
                return None
            result = json.loads(path.read_text())
            return float(result.get("score", sum(test.get("score", 0) for test in result["tests"])))

        return each(students, score)
