"""pytest without plugins: the tests are copied beside the student's file, a process for each student.

Exit status 0 is full marks, as in CI; otherwise each test that the JUnit report calls passed is a point.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import indent

from ..assignment import Assignment
from ..venvs import version_of
from .base import Scores, each

GRADE = """\
for student in $(ls submitted); do
    mkdir -p graded
    cp -r submitted/$student graded/$student
    cp tests/test_{name}.py graded/$student/
    (cd graded/$student && "{python}" -m pytest -q -p no:timeout -p no:xdist --junitxml=../../results/$student.xml)
    echo $? > results/$student.status
done
"""


class PlainPytest:
    """The grader that a course writes in an afternoon."""

    name = "plain pytest"

    def __init__(self, assignment: Assignment, python: Path = Path(sys.executable), name: str = name) -> None:
        """An environment that holds torch and pytest: by default this one."""
        self._assignment, self._python, self.name = assignment, python, name
        self.programs = python.parent

    def version(self) -> str:
        """Name and version."""
        return f"pytest {version_of(self._python, 'pytest')}"

    def prepare(self, folder: Path) -> None:
        """One test file; a configuration, so that none of a parent folder is found."""
        for made in ("tests", "results"):
            (folder / made).mkdir(parents=True)
        name, functions = self._assignment.name, ", ".join(self._assignment.functions)
        tests = "".join(
            f"\n\ndef test_{check}():\n{indent(text, '    ')}" for check, text in self._assignment.checks.items()
        )
        text = f"{self._assignment.setup}\n\nfrom {name} import {functions}\n{tests}"
        (folder / "tests" / f"test_{name}.py").write_text(text)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "grade.sh").write_text(GRADE.format(python=self._python, name=name))

    def hand_in(self, folder: Path, student: str, files: Mapping[str, str]) -> None:
        """A module that the tests import."""
        own = folder / "submitted" / student
        own.mkdir(parents=True)
        for name, text in files.items():
            (own / (f"{self._assignment.name}.py" if name == "attempt.py" else name)).write_text(text)

    def command(self, folder: Path) -> list[str]:
        """A loop over the class."""
        return ["sh", "grade.sh"]

    def scores(self, folder: Path, students: Iterable[str]) -> Scores:
        """By exit status, then by report."""

        def score(student: str) -> float | None:
            status, report = (folder / "results" / f"{student}.{kind}" for kind in ("status", "xml"))
            if not status.exists():
                return None
            if status.read_text().strip() == "0":
                return float(self._assignment.points)
            if not report.exists():
                return 0.0
            cases = ElementTree.parse(report).getroot().iter("testcase")
            return float(sum(len(case) == 0 for case in cases))

        return each(students, score)
