"""A class is asked about its own code in the real box, and its answers come into the results, a report and an export."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from rich.console import Console

from manyheads.cli.ask_class import ask_class, read_answers
from manyheads.course import load_course
from manyheads.errors import CourseFault
from manyheads.result import Answered, CheckResult, ExerciseResult, Result, read_results, write_result

pytestmark = pytest.mark.journey
Run = Callable[..., subprocess.CompletedProcess[str]]

CUMSUM = """import torch
def running_mean(x):
    total = torch.cumsum(x, dim=0)
    count = torch.arange(1, len(x) + 1)
    return total / count
"""
LOOP = """import torch
def running_mean(x):
    means = [x[: t + 1].mean() for t in range(x.shape[0])]
    return torch.stack(means)
"""
MARKUP = CUMSUM.replace("count", "zahl").replace("total / zahl", "(total / zahl if '<b>~{=}' else x)")
CLASS = {
    "ada": CUMSUM, "ben": CUMSUM, "cat": LOOP, "dan": MARKUP,
    "eve": "def running_mean(x):\n    while True:\n        pass\n",
    "fay": "import os\nos._exit(0)\n",
    "gus": "def running_mean(x:\n",
    "jan": "import time\n" + LOOP.replace("torch.stack(means)", "torch.stack(means)[: time.time_ns() // 1000 % len(x)]"),
    "hal": "def running_mean(x):\n    raise NotImplementedError\n",
}  # fmt: skip


def hand_in(folder: Path) -> Path:
    for student, source in CLASS.items():
        path = folder / student / "averages" / "01_running_mean.py"
        path.parent.mkdir(parents=True)
        path.write_text(source)
    (folder / "ida" / "averages").mkdir(parents=True)
    return folder


def asked(root: Path, submitted: Path, out: Path, seed: int = 3) -> str:
    """What is said."""
    said = io.StringIO()
    with pytest.raises(typer.Exit):  # somebody has no sheet
        ask_class(Console(file=said, width=200), load_course(root), submitted, out, seed)
    return said.getvalue()


def key_of(out: Path) -> dict[str, list[tuple[str, ...]]]:
    """Each student's questions, each with what is right."""
    found: dict[str, list[tuple[str, ...]]] = {}
    with (out / "key.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["student"], []).append(tuple(row[name] for name in ("text", *"ABCD", "right")))
    return found


def test_a_class_is_asked_and_its_answers_come_into_reports_and_exports(
    tiny_copy: Path, tmp_path: Path, run_course: Run
) -> None:
    submitted, out = hand_in(tmp_path / "submitted"), tmp_path / "sheets"
    said = asked(tiny_copy, submitted, out)
    key = key_of(out)

    # Who has a sheet, and why others have none.
    assert sorted(key) == ["ada", "ben", "cat", "dan"]
    assert key["ada"] == key["ben"]  # the same code
    assert len({str(key[student]) for student in ("ada", "cat", "dan")}) == 3
    assert "gus: 01 The running mean: it cannot be imported: it raised SyntaxError on line 1" in said
    assert "hal: 01 The running mean: nothing is written there yet" in said
    assert "ida: 01 The running mean: it was not handed in" in said
    for student in ("eve", "fay", "gus", "hal", "ida", "jan"):
        assert f"no sheet: {student}: Averages: no exercise gives a question" in said
    assert "4 of 10 submissions with a sheet" in said
    assert sorted(path.name for path in (out / "ada").iterdir()) == [
        "averages.gift",
        "averages.html",
        "averages.qti.zip",
    ]
    assert "<b>~" not in (out / "dan" / "averages.html").read_text()

    # The same seed gives the same; a key that is handed out is not written over.
    asked(tiny_copy, submitted, tmp_path / "again")
    assert (tmp_path / "again" / "key.csv").read_text() == (out / "key.csv").read_text()
    with pytest.raises(CourseFault, match=r"has the key of sheets .* Next: give --out another folder"):
        ask_class(Console(file=io.StringIO()), load_course(tiny_copy), submitted, out, 3)

    # What they answered.
    results = tmp_path / "results"
    for student in ("ada", "cat"):
        check = CheckResult(id="mean", title="averages", outcome="passed", score=4, max_score=4)
        exercise = ExerciseResult(id="running_mean", score=4, max_score=4, checks=(check,))
        write_result(
            Result(student=student, assignment="averages", score=4, max_score=4, device="cpu", isolation="namespaces",
                   seed=0, versions={}, exercises=(exercise,)), results,
        )  # fmt: skip
    right = {student: "".join(row[-1] for row in rows) for student, rows in key.items()}
    answers = tmp_path / "answers.csv"
    answers.write_text(
        f"student,assignment,answers\nada,averages,{right['ada'].lower()}\ncat,averages,-{right['cat'][1:]}\n"
    )
    told = io.StringIO()
    course = load_course(tiny_copy)
    read_answers(Console(file=told, width=200), course, answers, results, out / "key.csv")
    assert (
        "no answers: ben: averages\nno answers: dan: averages\n2 sheets with answers, count for nothing"
        in told.getvalue()
    )
    most = len(right["cat"])
    assert [(r.student, r.questions) for r in read_results(results)] == [
        ("ada", Answered(right=len(right["ada"]), asked=len(right["ada"]))), ("cat", Answered(right=most - 1, asked=most))
    ]  # fmt: skip
    export = run_course("export", results, "--course", tiny_copy)
    rows = list(csv.DictReader(io.StringIO(export.stdout)))
    assert [(row["student"], row["score"], row["questions"]) for row in rows] == [
        ("ada", "4", f"{len(right['ada'])}/{len(right['ada'])}"), ("cat", "4", f"{most - 1}/{most}")
    ]  # fmt: skip

    # Where course.yaml says so, they count.
    yaml = tiny_copy / "course.yaml"
    yaml.write_text(yaml.read_text().replace("\nlimits:", "\nquestions: {share: 50%}\nlimits:", 1))
    export = run_course("export", results, "--course", tiny_copy)
    score = 4 * (1 - 0.5 / most)
    assert [float(row["score"]) for row in csv.DictReader(io.StringIO(export.stdout))] == pytest.approx([4, score])
    done = run_course("report", results, "--course", tiny_copy)
    assert f"cat: Averages: {most - 1} of {most} questions about the own code right: −" in done.stdout
    page = (results / "report" / "index.html").read_text()
    assert f"<td>{most - 1}/{most}" in page
    assert f"{most - 1} of {most} right." in (results / "report" / "students" / "cat.html").read_text()


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("zoe,averages,AB", r"answers.csv:2: .*key.csv has no sheet of 'zoe' for 'averages'"),
        ("ada,averages,ABC", r"answers.csv:2: 'ABC' is not 2 letters from A to D"),
        ("ada,averages,AE", r"'AE' is not 2 letters"),
        ("ada,averages,AB\nada,averages,AB", r"answers.csv:3: a second row of 'ada' for 'averages'"),
    ],
)
def test_answers_that_fit_no_sheet_are_refused_with_their_line(tiny_copy: Path, rows: str, says: str) -> None:
    (tiny_copy / "key.csv").write_text("student,assignment,question,right\nada,averages,1,A\nada,averages,2,C\n")
    file = tiny_copy / "answers.csv"
    file.write_text(f"student,assignment,answers\n{rows}\n")
    with pytest.raises(CourseFault, match=rf"{says}.*Next: mend "):
        read_answers(Console(), load_course(tiny_copy), file, tiny_copy / "results")


def test_a_file_with_other_columns_is_refused(tiny_copy: Path) -> None:
    (tiny_copy / "key.csv").write_text("student,assignment,question,right\nada,averages,1,A\n")
    file = tiny_copy / "answers.csv"
    file.write_text("name,letters\nada,A\n")
    with pytest.raises(CourseFault, match=r"has no columns `student` and `assignment` and `answers`. Next: mend"):
        read_answers(Console(), load_course(tiny_copy), file, tiny_copy / "results")
