"""Times that are known are never lost, and course.yaml may say where they and the roster are."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
RIGHT = """import torch

def running_mean(x):
    if not x.numel():
        raise ValueError("an empty input has no mean")
    return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype)
"""


@pytest.fixture
def school(tiny_copy: Path, tmp_path: Path) -> Path:
    """A course with a due date, and the submissions of two, of whom ada was two days late."""
    text = (tiny_copy / "course.yaml").read_text()
    late = "time_zone: UTC\nlate: {per_day: 10%}\nassignments:\n"
    text = text.replace("assignments:\n", late).replace(
        "- id: averages\n", "- id: averages\n    due: 2026-12-01 18:00\n"
    )
    (tiny_copy / "course.yaml").write_text(text)
    for student in ("ada", "bela"):
        path = tmp_path / "in" / student / "averages" / "01_running_mean.py"
        path.parent.mkdir(parents=True)
        path.write_text(RIGHT)
    (tiny_copy / "times.csv").write_text("student,handed_in\nada,2026-12-03 12:00\nbela,2026-12-01 12:00\n")
    return tiny_copy


@pytest.fixture
def grade(run_course: Run, school: Path, tmp_path: Path) -> Run:
    def run(*options: object) -> subprocess.CompletedProcess[str]:
        out = ("--out", tmp_path / "out", "--jobs", "1", "--no-lines")
        return run_course("grade", tmp_path / "in", *out, *options, cwd=school)

    return run


def penalties(run_course: Run, school: Path, out: Path) -> list[str]:
    done = run_course("export", out, cwd=school)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    return [row["student"] for row in rows if "2 days late: −20%" in str(row)]


def test_a_run_without_the_times_keeps_those_of_the_run_before(
    run_course: Run, school: Path, grade: Run, tmp_path: Path
) -> None:
    assert grade("--times", school / "times.csv").returncode == 0
    for options in ((), ("--regrade",)):
        done = grade(*options)
        assert done.returncode == 0, done.stderr
        assert "2 days late: −20%" in done.stdout
        assert penalties(run_course, school, tmp_path / "out") == ["ada"]


def test_a_run_that_would_lose_a_time_stops_before_it_grades(
    run_course: Run, school: Path, grade: Run, tmp_path: Path
) -> None:
    grade("--times", school / "times.csv")
    before = (tmp_path / "out/ada/averages.json").read_bytes()
    (tmp_path / "in/ada/averages/01_running_mean.py").write_text(RIGHT + "# better\n")
    done = grade()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "course: 1 handed in anew since their times were given, and nothing says when: ada. "
        "Next: the same command with --times FILE that has them\n"
    )
    assert (tmp_path / "out/ada/averages.json").read_bytes() == before
    (school / "times.csv").write_text("student,handed_in\nada,2026-12-01 17:00\n")
    assert grade("--times", school / "times.csv").returncode == 0
    assert penalties(run_course, school, tmp_path / "out") == []
    handed_in = json.loads((tmp_path / "out/bela/averages.json").read_text())["handed_in"]
    assert handed_in["time"] == "2026-12-01T12:00:00Z", "who is not in the new file keeps the time that is known"


def test_course_yaml_says_where_the_times_and_the_roster_are(
    run_course: Run, school: Path, grade: Run, tmp_path: Path
) -> None:
    text = (school / "course.yaml").read_text()
    (school / "course.yaml").write_text(f"roster: roster.csv\ntimes: times.csv\n{text}")
    (school / "roster.csv").write_text("id\nada\nbela\nchen\n")
    done = grade()
    assert done.returncode == 0, done.stderr
    assert "2 days late: −20%" in done.stdout
    assert "Handed in nothing: 1 of 3 on the roster: chen" in done.stdout
    out = tmp_path / "out"
    assert "Handed in nothing: 1 of 3 on the roster: chen" in run_course("report", out, cwd=school).stdout
    assert "chen" in run_course("export", out, "--format", "canvas", cwd=school).stdout
    (school / "roster.csv").write_text("id\nzoe\n")
    for command in (("report", out), ("export", out)):
        assert "is on the roster" in run_course(*command, cwd=school).stderr
