"""A class is asked about its own code in the real box, and its answers come into the results, a report and an export."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from manyheads.cli.ask_class import ask_class, read_answers
from manyheads.cli.options import Console
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
    assert [path.name for path in (out / "pages" / "ada").iterdir()] == [
        "averages.html"
    ]  # what is handed out has no answer
    assert sorted(path.name for path in (out / "quizzes" / "ada").iterdir()) == ["averages.gift", "averages.qti.zip"]
    assert "<b>~" not in (out / "pages" / "dan" / "averages.html").read_text()

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
        ("ada,averages,", r"'' is not 2 letters from A to D, or - for none"),
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


def test_sheets_and_answers_in_one_command_are_refused(tiny_copy: Path, run_course: Run) -> None:
    done = run_course("ask", "--for", tiny_copy, "--answers", tiny_copy / "a.csv", "--course", tiny_copy)
    assert done.returncode == 2
    assert "--for makes sheets, and --answers reads what came back. Next: give one of them" in done.stderr


@pytest.mark.parametrize("right", ["Z", "", "AB", "-"])
def test_a_key_with_anything_but_one_letter_a_question_is_refused(tiny_copy: Path, right: str) -> None:
    (tiny_copy / "key.csv").write_text(f"student,assignment,question,right\nada,averages,1,{right}\n")
    (tiny_copy / "answers.csv").write_text("student,assignment,answers\nada,averages,A\n")
    with pytest.raises(
        CourseFault, match=r"key.csv:2: the key is not as it was written. Next: bring it back from a copy"
    ):
        read_answers(Console(), load_course(tiny_copy), tiny_copy / "answers.csv", tiny_copy / "results")


def test_a_key_too_large_to_be_read_whole_is_refused(tiny_copy: Path) -> None:
    rows = "".join(f"student{i},averages,1,A\n" for i in range(400_000))
    (tiny_copy / "key.csv").write_text(f"student,assignment,question,right\n{rows}")
    (tiny_copy / "answers.csv").write_text("student,assignment,answers\nstudent1,averages,A\n")
    with pytest.raises(CourseFault, match=r"key.csv is larger than 8 MiB. Next: take other columns out"):
        read_answers(Console(), load_course(tiny_copy), tiny_copy / "answers.csv", tiny_copy / "results")


def test_sheets_that_cannot_be_written_are_refused_before_the_questions_are_made(
    tiny_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyheads.cli.ask_class._drawn", lambda *_: pytest.fail("questions were made"))
    (tmp_path / "taken").write_text("")
    with pytest.raises(CourseFault, match=r"taken cannot be written \(.*\). Next: give --out another folder"):
        ask_class(Console(), load_course(tiny_copy), hand_in(tmp_path / "submitted"), tmp_path / "taken", 3)


HOSTILE = {
    "key.csv": CUMSUM,  # where the key goes
    "=cmd|x": CUMSUM.replace("count", "zahl"),
    "a;=1+1": CUMSUM.replace("count", "anzahl"),
    "longest": CUMSUM.replace("total / count", f"total / (count if '{'x' * 200_000}' else x)"),
    "slow": CUMSUM.replace("    total =", "    import time; time.sleep(0.4)\n    total ="),
}


def test_a_hostile_student_neither_stops_the_class_nor_takes_its_time(tiny_copy: Path, tmp_path: Path) -> None:
    submitted, out, results = tmp_path / "submitted", tmp_path / "sheets", tmp_path / "results"
    for student, source in HOSTILE.items():
        (submitted / student / "averages").mkdir(parents=True)
        (submitted / student / "averages" / "01_running_mean.py").write_text(source)
    said = asked(tiny_copy, submitted, out)
    assert (out / "pages" / "key.csv" / "averages.html").exists()
    assert "slow: 01 The running mean: while questions were made: Its questions need more than 6 seconds" in said
    assert "questions are longer than 8,000 characters" in said
    assert (out / "key.csv").stat().st_size < 100_000

    key = key_of(out)
    assert {"'=cmd|x", "a;'=1+1"} <= set(key)  # no formulas
    for student in HOSTILE:
        write_result(
            Result(student=student, assignment="averages", score=4, max_score=4, device="cpu", isolation="namespaces",
                   seed=0, versions={}, exercises=()), results,
        )  # fmt: skip
    letters = {name: "".join(row[-1] for row in rows) for name, rows in key.items()}
    answers = tmp_path / "answers.csv"
    answers.write_text(
        f"student,assignment,answers\n=cmd|x,averages,{letters[chr(39) + '=cmd|x']}\na;=1+1,averages,-----\n"
    )
    yaml = tiny_copy / "course.yaml"
    yaml.write_text(yaml.read_text().replace("\nlimits:", "\nquestions: {share: 50%}\nlimits:", 1))
    told = io.StringIO()
    read_answers(Console(file=told, width=200), load_course(tiny_copy), answers, results, out / "key.csv")
    assert "no answers: longest: averages\nWho has no row loses nothing; a row of - alone" in told.getvalue()
    found = {r.student: r.questions for r in read_results(results) if r.questions}
    assert found == {"=cmd|x": Answered(right=5, asked=5), "a;=1+1": Answered(right=0, asked=5)}
