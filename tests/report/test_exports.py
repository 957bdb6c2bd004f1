"""Results in other systems' formats, read back as those systems read them."""

import csv
import io
import json
from pathlib import Path

import pytest

from manyheads.report.aggregate import NOT_HELD, UNEXPLAINED
from manyheads.report.exports import FORMATS, gradescope_files
from manyheads.result import (
    CheckResult,
    Diagnosed,
    FunctionResult,
    Outcome,
    ProvedLine,
    Result,
    write_result,
)
from tests import make
from tests.conftest import Run

VIEW = Diagnosed(id="wrong_view", title="You viewed straight to the shape.", hint="Which axis first?")


def check(id_: str, score: float, most: float, outcome: Outcome = "failed", evidence: str = "head 0 differs"):
    told = {} if score == most else {"evidence": evidence, "hint": "Look again."}
    return make.check(id_, score, most, outcome, title=f"checks {id_}", **told)


def graded(student: str, *checks: CheckResult, note: str = "", named: tuple[Diagnosed, ...] = ()) -> Result:
    exercise = make.exercise("reshape_dance", *checks, diagnosis=named, note=note)
    return make.result(student, exercise, assignment="heads")


ADA = graded("ada", check("split", 1.25, 1.25), check("merge", 2, 2))
BEN = graded("ben", check("split", 0, 1.25), check("merge", 2, 2), named=(VIEW,), note="The .py counts.")
CAT = graded(
    "cat", check("a", 0, 1, "timeout"), check("b", 0, 1, "crashed"), check("c", 0, 1, "skipped"), check("d", 0, 1)
)


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_of_a_wrong_attempt_in_a_gradebook_csv_does_not_say_that_nothing_explains_it() -> None:
    read = CAT.model_copy(update={"isolation": NOT_HELD})
    assert [row["group"] for row in table(FORMATS["csv"]([CAT, read]))] == [UNEXPLAINED, "not in the gradebook"]


def test_the_line_that_is_wrong_is_told_and_the_edit_is_not() -> None:
    exercise = BEN.exercises[0].model_copy(update={"lines": (ProvedLine(line=23, edit="secret → edit"),)})
    text = FORMATS["gradescope"]([BEN.model_copy(update={"exercises": (exercise,)})])
    assert "You viewed straight to the shape (line 23)." in text
    assert "secret" not in text


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_no_format_has_the_edit(format: str) -> None:
    exercise = BEN.exercises[0].model_copy(update={"lines": (ProvedLine(line=23, edit="secret → edit"),)})
    assert "secret" not in FORMATS[format]([BEN.model_copy(update={"exercises": (exercise,)})])


def test_a_check_is_told_what_was_found_in_its_own_function_alone() -> None:
    functions = tuple(FunctionResult(name=name, state="wrong", check=f"checks {name}") for name in ("split", "merge"))
    checks = [check(name, 0, 1).model_copy(update={"function": name}) for name in ("split", "merge")]
    cat = graded("cat", *checks, named=(VIEW.model_copy(update={"function": "merge"}),))
    text = FORMATS["gradescope"](
        [cat.model_copy(update={"exercises": (cat.exercises[0].model_copy(update={"functions": functions}),)})]
    )
    assert text.count(VIEW.title) == 1
    assert text.index("checks merge") < text.index(VIEW.title)


def test_scores_keep_the_digits_that_a_gradebook_keeps() -> None:
    third = graded("ada", check("split", 1234.5625, 2000))
    assert table(FORMATS["csv"]([third]))[0]["score"] == "1234.5625"
    assert table(FORMATS["canvas"]([third]))[1]["heads"] == "1234.5625"


def test_canvas_leaves_blank_what_a_student_has_no_result_for() -> None:
    other = ADA.model_copy(update={"assignment": "tails", "student": "dan"})
    rows = table(FORMATS["canvas"]([BEN, other]))
    assert [(r["Student"], r["heads"], r["tails"]) for r in rows[1:]] == [("ben", "2", ""), ("dan", "", "3.25")]


GRADESCOPE = {"score", "output", "output_format", "tests"}
GRADESCOPE_TEST = {"name", "name_format", "number", "score", "max_score", "status", "output", "output_format"}


def test_gradescope_gets_one_results_json_for_every_submission() -> None:
    files = gradescope_files([ADA, BEN])
    assert list(files) == [Path("ada/heads/results.json"), Path("ben/heads/results.json")]
    ben = json.loads(files[Path("ben/heads/results.json")])
    assert set(ben) == GRADESCOPE
    assert ben["score"] == 2 == sum(test["score"] for test in ben["tests"])
    assert "The .py counts." in ben["output"]
    assert {key for test in ben["tests"] for key in test} == GRADESCOPE_TEST
    failed, passed = ben["tests"]
    assert (failed["status"], failed["number"], passed["status"], passed["number"]) == (
        "failed", "1.1", "passed", "1.2",
    )  # fmt: skip
    assert failed["output"] == "head 0 differs\nYou viewed straight to the shape.\nhint: Which axis first?"
    assert passed["output"] == ""


def test_of_one_submission_alone_gradescopes_file_is_what_is_written() -> None:
    assert set(json.loads(FORMATS["gradescope"]([ADA]))) == GRADESCOPE
    assert set(json.loads(FORMATS["gradescope"]([ADA, BEN]))) == {"ada/heads", "ben/heads"}


def test_without_a_diagnosis_no_hint_is_given() -> None:
    (shown,) = gradescope_files([graded("ada", check("split", 0, 1))]).values()
    assert json.loads(shown)["tests"][0]["output"] == "head 0 differs"


def test_the_command_writes_a_file_or_for_gradescope_a_folder(run_course: Run, tmp_path: Path) -> None:
    for result in (ADA, BEN):
        write_result(result, tmp_path / "results")
    assert run_course("export", "results", "--format", "canvas", "--out", "to/grades.csv").returncode == 0
    assert (tmp_path / "to" / "grades.csv").read_text() == FORMATS["canvas"]([ADA, BEN])
    assert run_course("export", "results", "--format", "gradescope", "--out", "to/gradescope").returncode == 0
    written = {p.relative_to(tmp_path / "to" / "gradescope"): p.read_text() for p in tmp_path.glob("to/*/*/*/*")}
    assert written == gradescope_files([ADA, BEN])


@pytest.mark.parametrize(("arguments", "says", "next_"), [
    pytest.param(["nowhere"], "nowhere holds no results", "course grade SUBMITTED --out nowhere", id="no results"),
    pytest.param(["results", "--out", "results"], "results cannot be written", "give --out another path", id="a folder in place of a file"),
    pytest.param(["--gradebook", "sqlite:///none.db", "--course", str(Path(__file__).parents[1] / "tiny_course")], "there is no none.db", "course grade SUBMITTED --gradebook sqlite:///none.db", id="no gradebook"),
])  # fmt: skip
def test_wrong_usage_is_one_sentence_and_a_next_command(run_course, tmp_path, arguments, says, next_):
    write_result(ADA, tmp_path / "results")
    done = run_course("export", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.endswith(f"Next: {next_}\n")
