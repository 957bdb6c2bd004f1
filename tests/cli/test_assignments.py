"""A course of two assignments: a table for each, in the course's order, by titles; --assignment takes one of them."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from manyheads.result import Diagnosed, Result, write_result
from tests import make
from tests.conftest import Run

COURSE = """\
title: Numbers
assignments:
  - id: z_sums
    title: Adding up
    exercises:
      - {id: one_total, title: The total, points: 2, hint: Add.}
      - {id: sub_totals, title: Subtotals, points: 2, hint: Add.}
  - id: a_means
    title: The middle
    exercises:
      - {id: one_mean, title: The mean, points: 2, hint: Divide.}
"""
IDS = ("z_sums", "a_means", "one_total", "sub_totals", "one_mean", "no_division", "by_two")
TITLES = ["Adding up", "01 The total", "02 Subtotals", "The middle", "01 The mean"]
OVERRIDES = (
    "- {student: ada, exercise: sub_totals, score: 2, by: Dr. X}\n- {student: ben, exercise: one_mean, score: 1}\n"
)


def graded(student: str, assignment: str, **scores: float) -> Result:
    named = (Diagnosed(id="no_division", title="You did not divide.", hint="?", alternatives=("by_two",),
                       alternative_titles=("You divided by two.",)),)  # fmt: skip
    exercises = [
        make.exercise(
            id_, make.check("values", score, 2, title="has the values"), diagnosis=() if score == 2 else named
        )
        for id_, score in scores.items()
    ]
    return make.result(student, *exercises, assignment=assignment)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "course.yaml").write_text(COURSE)
    (tmp_path / "overrides.yaml").write_text(OVERRIDES)
    (tmp_path / "solutions").mkdir()
    for student in ("ada", "ben"):
        write_result(graded(student, "z_sums", sub_totals=0, one_total=0), tmp_path / "results")  # of an old course
    write_result(graded("ben", "a_means", one_mean=0), tmp_path / "results")
    return tmp_path


def seen(page: Path) -> str:
    """What a reader sees or hears of a page's main part: its text and the labels of what it shows."""
    main = page.read_text(encoding="utf-8").partition("<main")[2]
    return re.sub("<[^>]*>", " ", re.sub(r'<[^>]* (?:aria-label|alt|title)="([^"]*)"[^>]*>', r" \1 ", main))


def in_order(text: str, titles: list[str]) -> bool:
    """Whether the text has these titles, the first of each in this order, and no id."""
    places = [text.find(title) for title in titles]
    return -1 not in places and places == sorted(places) and not [id_ for id_ in IDS if id_ in text]


@pytest.mark.parametrize(("command", "titles"), [
    (["report", "results"], TITLES),
    (["report", "results", "--students"], TITLES),
    (["overrides"], ["Adding up", "The middle", "02 Subtotals", "01 The mean"]),
])  # fmt: skip
def test_a_terminal_has_each_assignment_in_the_courses_order_by_titles(run_course, here, command, titles):
    done = run_course(*command, cwd=here, env={"COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    assert in_order(done.stdout, titles), done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80 or command[0] == "report"


def test_so_have_the_pages_and_the_feedback(run_course: Run, here: Path) -> None:
    assert run_course("report", "results", cwd=here).returncode == 0
    pages = here / "results" / "report"
    for page in (pages / "index.html", pages / "students" / "ben.html"):
        assert in_order(seen(page), ["Adding up", "Subtotals", "The middle", "The mean"]), seen(page)
    assert run_course("feedback", "results", cwd=here).returncode == 0
    for name, titles in (("z_sums", TITLES[:3]), ("a_means", TITLES[3:])):
        folder = here / "home" / "feedback" / "ben" / name
        assert set(titles) <= set(
            re.split(r": [\d.]+ / \d\n| \| |\n", (folder / f"{name}.md").read_text().removeprefix("## "))
        )
        assert not [id_ for id_ in IDS if id_ in seen(folder / f"{name}.html")]


def test_so_has_every_export(run_course: Run, here: Path) -> None:
    def exported(format_: str, *options: str) -> str:
        return run_course("export", "results", "--format", format_, *options, cwd=here).stdout

    rows = list(csv.DictReader(io.StringIO(exported("csv"))))
    assert list(dict.fromkeys(row["assignment"] for row in rows)) == ["z_sums", "a_means"]
    assert {(row["exercise"], row["exercise_title"]) for row in rows} == {
        ("one_total", "01 The total"), ("sub_totals", "02 Subtotals"), ("one_mean", "01 The mean")
    }  # fmt: skip
    assert next(csv.reader(io.StringIO(exported("canvas"))))[5:] == ["Adding up", "The middle"]
    assert next(csv.reader(io.StringIO(exported("moodle", "--assignment", "middle"))))[3:] == ["The middle"]
    exported("gradescope", "--assignment", "z_sums", "--out", "files")
    tests = json.loads((here / "files" / "ada" / "z_sums" / "results.json").read_text(encoding="utf-8"))["tests"]
    assert [(test["name"], test["number"]) for test in tests] == [
        ("02 Subtotals: has the values", "2.1"), ("01 The total: has the values", "1.1")
    ]  # fmt: skip


@pytest.mark.parametrize(("command", "name", "shown", "hidden"), [
    (["report", "results"], "a_means", "The middle", "Adding up"),
    (["report", "results", "--students"], "adding UP", "Adding up", "The middle"),
    (["export", "results"], "midd", "a_means", "z_sums"),
    (["overrides"], "The middle", "The middle", "Adding up"),
])  # fmt: skip
def test_one_assignment_is_named_by_its_id_its_title_or_a_part(run_course, here, command, name, shown, hidden):
    done = run_course(*command, "--assignment", name, cwd=here)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    assert hidden not in done.stdout


@pytest.mark.parametrize("command", [["report"], ["export"], ["feedback"], ["overrides"], ["collect", "."]])
def test_an_assignment_that_there_is_not_is_one_sentence(run_course: Run, here: Path, command: list[str]) -> None:
    done = run_course(*command, "--assignment", "the midle", cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "course: there is no assignment 'the midle'; did you mean a_means? Next: the same with --assignment z_sums\n"
    )


def test_collect_takes_the_files_of_one_and_counts_the_others(run_course: Run, here: Path) -> None:
    for name in ("01_one_total.py", "01_one_mean.py"):
        (here / "download" / "ada").mkdir(parents=True, exist_ok=True)
        (here / "download" / "ada" / name).write_text("def f():\n    pass\n")
    done = run_course("collect", "download", "--assignment", "adding", cwd=here)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "note: of other assignments, and left out: 1\n" in done.stdout
    assert [path.relative_to(here).as_posix() for path in here.glob("submitted/*/*/*.py")] == [
        "submitted/ada/z_sums/01_one_total.py"
    ]
