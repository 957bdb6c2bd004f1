"""pytest without plugins: the tests are copied beside the student's file, a process for each student.

Exit status 0 is full marks, as in CI; otherwise each test that the JUnit report calls passed is a point.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from textwrap import indent

from ..exercise import CHECKS, POINTS, SETUP, STUDENTS

GRADE = """\
for student in {students}; do
    mkdir -p graded
    cp -r submitted/$student graded/$student
    cp tests/test_running_mean.py graded/$student/
    (cd graded/$student && "{python}" -m pytest -q -p no:timeout -p no:xdist --junitxml=../../results/$student.xml)
    echo $? > results/$student.status
done
"""


class PlainPytest:
    """The grader that a course writes in an afternoon."""

    name = "plain pytest"
    programs = Path(sys.executable).parent

    def version(self) -> str:
        """Name and version."""
        return f"pytest {version('pytest')}"

    def prepare(self, folder: Path) -> None:
        """One test file; a configuration, so that none of a parent folder is found."""
        for name in ("tests", "results"):
            (folder / name).mkdir()
        tests = "".join(f"\n\ndef test_{name}():\n{indent(text, '    ')}" for name, text in CHECKS.items())
        text = f"{SETUP}\n\nfrom running_mean import running_mean\n{tests}"
        (folder / "tests" / "test_running_mean.py").write_text(text)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "grade.sh").write_text(GRADE.format(python=sys.executable, students=" ".join(STUDENTS)))

    def hand_in(self, folder: Path, student: str, files: Mapping[str, str]) -> None:
        """A module that the tests import."""
        own = folder / "submitted" / student
        own.mkdir(parents=True)
        for name, text in files.items():
            (own / ("running_mean.py" if name == "attempt.py" else name)).write_text(text)

    def command(self, folder: Path) -> list[str]:
        """A loop over the class."""
        return ["sh", "grade.sh"]

    def score(self, folder: Path, student: str) -> float | None:
        """By exit status, then by report."""
        status, report = (folder / "results" / f"{student}.{kind}" for kind in ("status", "xml"))
        if not status.exists():
            return None
        if status.read_text().strip() == "0":
            return float(POINTS)
        if not report.exists():
            return 0.0
        cases = ElementTree.parse(report).getroot().iter("testcase")
        return float(sum(len(case) == 0 for case in cases))
