"""A class under pseudonyms: graded, reported and exported; one command says who is who."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
MEAN = "def running_mean(x):\n    return x\n"


@pytest.fixture
def graded(run_course: Run, tiny_copy: Path, tmp_path: Path) -> tuple[Path, Path, str]:
    """Results of lovelace and hopper under pseudonyms, the roster, and what was said; turing handed in nothing."""
    for student in ("lovelace", "hopper"):
        folder = tmp_path / "submitted" / student / "averages"
        folder.mkdir(parents=True)
        (folder / "01_running_mean.py").write_text(MEAN)
    (folder / "lovelaces_own.py").write_text("")
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name,canvas_id\nlovelace,Ada Lovelace,12\nturing,Alan Turing,13\nhopper,Grace Hopper,14\n")
    course = tiny_copy / "course.yaml"
    course.write_text(course.read_text() + "not_handed_in: zero\n")
    out = tmp_path / "out"
    done = run_course(
        "grade", tmp_path / "submitted", "--out", out, "--anonymous", "--roster", roster, "--no-lines", "--jobs", "1",
        cwd=tiny_copy,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr  # lovelaces_own.py is not graded
    return out, roster, done.stdout


def test_nobody_is_named_until_somebody_asks(run_course: Run, tiny_copy: Path, graded: tuple[Path, Path, str]) -> None:
    out, roster, said = graded
    report = run_course("report", out, "--students", "--roster", roster, cwd=tiny_copy)
    assert report.returncode == 0, report.stderr
    told = said + report.stdout + "".join(p.read_text() for p in out.rglob("*") if p.is_file())
    names = [str(path) for path in out.rglob("*")]
    for name in ("lovelace", "hopper", "turing", "Ada ", "Grace", "Alan"):
        assert name not in told
        assert not [path for path in names if name in Path(path).name]
    known = json.loads((tiny_copy / ".course" / "pseudonyms.json").read_text())
    absent = next(pseudonym for pseudonym, student in known.items() if student == "turing")
    assert f"Handed in nothing: 1 of 3 on the roster: {absent}" in said
    assert f"on the roster handed in nothing: <bdi>{absent}</bdi>" in (out / "report" / "index.html").read_text()

    asked = run_course("resolve", absent, cwd=tiny_copy)
    assert asked.stdout.split() == [absent, "turing"]
    everybody = run_course("resolve", cwd=tiny_copy).stdout.split()
    assert everybody == [word for pseudonym in sorted(known) for word in (pseudonym, known[pseudonym])]

    refused = run_course("export", out, "--format", "canvas", "--roster", roster, cwd=tiny_copy)
    assert (refused.returncode, refused.stderr) == (
        2,
        "course: these results are under pseudonyms. Next: course export … --resolve\n",
    )
    done = run_course("export", out, "--format", "canvas", "--roster", roster, "--resolve", cwd=tiny_copy)
    rows = list(csv.reader(io.StringIO(done.stdout)))[2:]
    assert [(row[0], row[1]) for row in rows] == [("Grace Hopper", "14"), ("Ada Lovelace", "12"), ("Alan Turing", "13")]
    assert rows[-1][-1] == "0"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["resolve"], "course: there are no pseudonyms. Next: course grade SUBMITTED --anonymous\n"),
        (["resolve", "x"], "course: no pseudonym is or stands for 'x'. Next: course resolve\n"),
        (["grade", "exercises", "--anonymous", "--gradebook", "sqlite:///x.db"],
         "course: --gradebook would get pseudonyms as students. Next: course grade without --anonymous\n"),
    ],
)  # fmt: skip
def test_wrong_usage_is_status_2(run_course: Run, tiny_copy: Path, arguments: list[str], says: str) -> None:
    done = run_course(*arguments, cwd=tiny_copy)
    assert (done.returncode, done.stderr) == (2, says)
