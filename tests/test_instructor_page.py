"""The commands of docs/instructor.md run from top to bottom, each on what those above it made."""

import re
import zipfile
from pathlib import Path

import pytest

from tests.make import REPOSITORY, TINY, copy_course

FILLED = {
    "DOWNLOAD": "submissions.zip",
    "ASSIGNMENT/EXERCISE": "averages/running_median",
    "ASSIGNMENT": "averages",
}
FILLED |= {"ada/EXERCISE": "lovelaceada_12345/running_mean"}
_COMMAND = re.compile(r"^    \.venv/bin/course (.*?)(?:  +#.*)?$", re.MULTILINE)

pytestmark = pytest.mark.journey


def commands() -> list[list[str]]:
    """Return those of the page, with real names for what stands in capitals."""
    page = (REPOSITORY / "docs" / "instructor.md").read_text(encoding="utf-8")
    rows = []
    for line in _COMMAND.findall(page):
        rows.append([FILLED.get(word, word) for word in line.split()])
    return rows


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A small course, and what Canvas gives for a class of two."""
    folder = copy_course(TINY, tmp_path / "course")
    solution = (TINY / "solutions" / "averages" / "01_running_mean.py").read_text()
    with zipfile.ZipFile(folder / "submissions.zip", "w") as archive:
        archive.writestr("lovelaceada_12345_678901_01_running_mean.py", solution)
        archive.writestr(
            "bartokbela_12346_678902_01_running_mean.py", "def running_mean(x):\n    return x\n"
        )
    return folder


def test_every_command_for_an_instructor_runs_in_its_order(run_course, course):
    assert len(commands()) >= 15
    for command in [["release"], *commands()]:  # what this engine has made comes first
        if command == ["verify"]:
            command = ["verify", "--seeds", "1", "--pairs", "1"]  # the same, with less to try
        completed = run_course(*command, cwd=course)
        assert completed.returncode == 0, (
            f"course {' '.join(command)}\n{completed.stdout}{completed.stderr}"
        )
    for path in (
        "results/report/index.html",
        "../class/course.yaml",
        "../autograder.zip",
        "../my-course/course.yaml",
    ):
        assert (course / path).exists(), path
