"""Results in other systems' formats, read back as those systems read them."""

import csv
import io
import json
from pathlib import Path

import pytest

from manyheads.report.class_view import NOT_HELD, UNEXPLAINED, ClassList, ClassView
from manyheads.report.exports import FORMATS, gradescope_files
from manyheads.result import CheckResult, Diagnosed, FunctionResult, Outcome, ProvedLine, Result, write_result
from manyheads.submission.roster import Roster, Student
from tests import make
from tests.conftest import Run
from tests.make import TINY

VIEW = Diagnosed(id="wrong_view", title="You viewed straight to the shape.", hint="Which axis first?")


def check(id_: str, score: float, most: float, outcome: Outcome = "failed", evidence: str = "head 0 differs"):
    told = {} if score == most else {"evidence": evidence, "hint": "Look again."}
    return make.check(id_, score, most, outcome, title=f"checks {id_}", **told)


def graded(student: str, *checks: CheckResult, assignment: str = "heads", named: tuple[Diagnosed, ...] = (), **more):
    exercise = make.exercise(f"{assignment}_1", *checks, diagnosis=named, **more)
    return make.result(student, exercise, assignment=assignment)


ADA = graded("ada", check("split", 1.25, 1.25), check("merge", 2, 2))
BEN = graded("ben", check("split", 0, 1.25), check("merge", 2, 2), named=(VIEW,), note="The .py counts.")
CAT = graded(
    "cat", check("a", 0, 1, "timeout"), check("b", 0, 1, "crashed"), check("c", 0, 1, "skipped"), check("d", 0, 1)
)
LINED = graded("ben", check("split", 0, 1), named=(VIEW,), lines=(ProvedLine(line=23, edit="secret → edit"),))
ROSTER = Roster((
    Student("ada", "Ada Lovelace", "A", "ada@example.org", "alovelace", "S100", "12345"),
    Student("ben", "Ben Bitdiddle", "B", email="ben@example.org"),
))  # fmt: skip


def exported(format_: str, *results: Result, **more: ClassList) -> str:
    return FORMATS[format_](ClassView(results, **more))


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def rows(format_: str, *results: Result, roster: Roster = ROSTER, zero: bool = False) -> list[list[str]]:
    return list(csv.reader(io.StringIO(exported(format_, *results, members=ClassList(roster, zero)))))


def test_of_a_wrong_attempt_in_a_gradebook_csv_does_not_say_that_nothing_explains_it() -> None:
    read = CAT.model_copy(update={"isolation": NOT_HELD})
    assert [row["group"] for row in table(exported("csv", CAT, read))] == [UNEXPLAINED, "not in the gradebook"]


def test_the_line_that_is_wrong_is_told_and_no_format_has_the_edit() -> None:
    texts = [*gradescope_files(ClassView([LINED])).values(), *(exported(name, LINED) for name in FORMATS)]
    assert "You viewed straight to the shape (line 23)." in texts[0]
    assert "secret" not in "".join(texts)


def test_a_check_is_told_what_was_found_in_its_own_function_alone() -> None:
    functions = tuple(FunctionResult(name=name, state="wrong", check=f"checks {name}") for name in ("split", "merge"))
    checks = [check(name, 0, 1).model_copy(update={"function": name}) for name in ("split", "merge")]
    named = (VIEW.model_copy(update={"function": "merge"}),)
    (text,) = gradescope_files(ClassView([graded("cat", *checks, named=named, functions=functions)])).values()
    assert text.count(VIEW.title) == 1
    assert text.index("checks merge") < text.index(VIEW.title)


def test_scores_keep_their_digits_and_canvas_leaves_blank_what_a_student_has_no_result_for() -> None:
    third = graded("ada", check("split", 1234.5625, 2000))
    assert table(exported("csv", third))[0]["score"] == table(exported("canvas", third))[1]["heads"] == "1234.5625"
    other = ADA.model_copy(update={"assignment": "tails", "student": "dan"})
    found = table(exported("canvas", BEN, other))
    assert [(r["Student"], r["heads"], r["tails"]) for r in found[1:]] == [("ben", "2", ""), ("dan", "", "3.25")]


@pytest.mark.parametrize(("zero", "cell"), [(False, ""), (True, "0")])
def test_gradebooks_get_their_ids_and_a_row_for_whoever_handed_in_nothing(zero: bool, cell: str) -> None:
    assert rows("canvas", ADA, zero=zero) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "heads"],
        ["    Points Possible", "", "", "", "", "3.25"],
        ["Ada Lovelace", "12345", "S100", "alovelace", "A", "3.25"],
        ["Ben Bitdiddle", "", "", "ben", "B", cell],
    ]
    assert rows("moodle", ADA, zero=zero) == [
        ["Username", "ID number", "Email address", "heads"],
        ["alovelace", "S100", "ada@example.org", "3.25"],
        ["ben", "", "ben@example.org", cell],
    ]
    tails = [graded(name, check("split", 3, 4), assignment="tails") for name in ("ada", "ben")]
    assert [row[:5] for row in rows("csv", ADA, *tails, zero=zero)[1:]] == [
        ["ada", "heads", "heads_1", "3.25", "3.25"],
        ["ben", "heads", "heads_1", cell, "3.25"],
        ["ada", "tails", "tails_1", "3", "4"],
        ["ben", "tails", "tails_1", "3", "4"],
    ]


@pytest.mark.parametrize("format_", ["canvas", "moodle"])
def test_who_is_no_longer_on_the_roster_is_in_no_platforms_file(format_: str) -> None:
    dropped = ADA.model_copy(update={"student": "dropped"})
    assert "dropped" not in str(rows(format_, ADA, dropped))
    assert "dropped" in str(rows(format_, ADA, dropped, roster=Roster())), "without a roster everybody is"
    assert "dropped" in str(rows("csv", ADA, dropped))


GRADESCOPE = {"score", "output", "output_format", "tests"}
GRADESCOPE_TEST = {"name", "name_format", "number", "score", "max_score", "status", "output", "output_format"}


def test_gradescope_gets_one_results_json_for_every_submission() -> None:
    files = gradescope_files(ClassView([ADA, BEN]))
    assert list(files) == [Path("ada/heads/results.json"), Path("ben/heads/results.json")]
    ben = json.loads(files[Path("ben/heads/results.json")])
    assert set(ben) == GRADESCOPE
    assert ben["score"] == 2 == sum(test["score"] for test in ben["tests"])
    assert "The .py counts." in ben["output"]
    assert {key for test in ben["tests"] for key in test} == GRADESCOPE_TEST
    failed, passed = ben["tests"]
    assert [(test["status"], test["number"]) for test in (failed, passed)] == [("failed", "1.1"), ("passed", "1.2")]
    assert failed["output"] == "head 0 differs\nYou viewed straight to the shape.\nhint: Which axis first?"
    assert passed["output"] == ""
    (unnamed,) = gradescope_files(ClassView([graded("ada", check("split", 0, 1))])).values()
    assert json.loads(unnamed)["tests"][0]["output"] == "head 0 differs"


def test_the_command_writes_a_file_or_for_gradescope_a_folder(run_course: Run, tmp_path: Path) -> None:
    for result in (ADA, BEN):
        write_result(result, tmp_path / "results")
    assert run_course("export", "results", "--format", "canvas", "--out", "to/grades.csv").returncode == 0
    assert (tmp_path / "to" / "grades.csv").read_text() == exported("canvas", ADA, BEN)
    assert run_course("export", "results", "--format", "gradescope", "--out", "to/gradescope").returncode == 0
    written = {p.relative_to(tmp_path / "to" / "gradescope"): p.read_text() for p in tmp_path.glob("to/*/*/*/*")}
    assert written == gradescope_files(ClassView([ADA, BEN]))


@pytest.mark.parametrize(("arguments", "says", "next_"), [
    pytest.param(["nowhere"], "nowhere holds no results", "course grade SUBMITTED --out nowhere", id="no results"),
    pytest.param(["results", "--format", "gradescope"], "Gradescope reads a file for each submission", "the same with --out FOLDER", id="Gradescope without a folder"),
    pytest.param(["results", "--out", "results"], "results cannot be written", "give --out another path", id="a folder in place of a file"),
    pytest.param(["--gradebook", "sqlite:///none.db", "--course", str(TINY)], "there is no none.db", "course grade SUBMITTED --gradebook sqlite:///none.db", id="no gradebook"),
])  # fmt: skip
def test_wrong_usage_is_one_sentence_and_a_next_command(run_course, tmp_path, arguments, says, next_):
    write_result(ADA, tmp_path / "results")
    done = run_course("export", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.endswith(f"Next: {next_}\n")
