"""What the grader itself could not judge has no points anywhere, and is never a 0."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from manyheads.platforms.pull_request import verdict, why_not_on_a_gpu
from manyheads.report.class_view import ClassView
from manyheads.report.exports import FORMATS, gradescope_files
from manyheads.report.markdown import feedback_markdown, one_exercise, results_section
from manyheads.report.pages import student_page, write_pages
from manyheads.report.terminal import exercise_report
from manyheads.result import ExerciseResult, Result
from tests import make

SAID = "Not graded: the grader itself failed here. That is not your fault."


def exercise(id_: str, score: float | None = 2) -> ExerciseResult:
    """Of 2 points. None: a check could not be run, and the other one passed."""
    evidence = "" if score == 2 else "The grader itself failed here; this is not your fault."
    late = make.check("merge", (score or 1) - 1, 1, "skipped" if score is None else "failed", evidence=evidence)
    return make.exercise(id_, make.check("split", 1), late, score=score)


def graded(student: str, dance: float | None, mask: float | None) -> Result:
    return make.result(student, exercise("dance", dance), exercise("mask", mask), assignment="heads", seed=7)


ADA, BEN = graded("ada", 2, None), graded("ben", 2, 1)


def test_a_result_with_such_an_exercise_has_no_total() -> None:
    assert [(r.score, r.max_score, r.not_graded) for r in (ADA, BEN)] == [(None, 4, ("mask",)), (3, 4, ())]
    assert Result.model_validate_json(ADA.model_dump_json()) == ADA
    excused = make.result("ada", exercise("dance"), exercise("mask", None).model_copy(update={"excused": True}))
    assert (excused.score, excused.max_score, excused.not_graded) == (2, 2, ()), (
        "one that is excused counts for nothing"
    )
    assert [one_exercise(ADA, id_).score for id_ in ("dance", "mask")] == [2, None]


@pytest.mark.parametrize("results", [[ADA, BEN], [ADA]], ids=["with others", "alone"])
def test_the_class_page_says_so_and_has_no_points_for_it(results: list[Result], tmp_path: Path) -> None:
    page = write_pages(ClassView(results), tmp_path / "report").read_text(encoding="utf-8")
    assert "Not graded: 1." in page
    (row,) = re.findall(r'<tr data-section=""><th scope="row"><a href="students/ada.html">.*?</tr>', page)
    assert [re.sub("<[^>]*>", "", cell) for cell in row.split("<td")[1:]] == [' class="s5">2', ">?", ">?"]


def test_a_student_reads_that_it_is_not_graded_and_not_why() -> None:
    page = student_page(ClassView([ADA]), [ADA])
    text = " ".join(re.sub("<[^>]*>", " ", page.partition("<main")[2]).split())
    assert "heads not graded: 1 of 2" in text
    assert f"mask not graded {SAID}" in text
    assert "does" not in text.partition("? mask")[2]
    said = " ".join(" ".join(make.printed(exercise_report(ADA.exercises[1]), 80)).split())
    assert said.startswith(f"? mask ? / 2 {SAID}")
    markdown = results_section("Heads", [ADA])
    assert markdown.startswith("## Heads: not graded: 1 of 2\n")
    assert "| ? | mask | not graded |" in markdown
    assert "0 / " not in markdown
    assert "not graded: 1 of 2" in feedback_markdown(ADA)


@pytest.mark.parametrize(("result", "unwritten", "says"), [
    pytest.param(ADA, set(), ("neutral", "not graded: 1 of 2"), id="nor right"),
    pytest.param(graded("ada", 1, None), set(), ("failure", "not graded: 1 of 2"), id="wrong beside it"),
    pytest.param(ADA, {("heads", "mask")}, ("success", "not graded: 1 of 2"), id="not started"),
])  # fmt: skip
def test_a_pull_request_is_not_wrong_for_it(result: Result, unwritten: set[tuple[str, str]], says: tuple[str, str]) -> None:  # fmt: skip
    assert verdict([result], "none", unwritten) == says
    assert why_not_on_a_gpu([result], ()) == "", "one of its checks passed"


@pytest.mark.parametrize(("format_", "rows"), [
    ("csv", [["ada", "heads", "dance", "2"], ["ada", "heads", "mask", ""], ["ben", "heads", "dance", "2"], ["ben", "heads", "mask", "1"]]),
    ("canvas", [["ada", "", "", "ada", "", ""], ["ben", "", "", "ben", "", "3"]]),
    ("moodle", [["ada", "", "", ""], ["ben", "", "", "3"]]),
])  # fmt: skip
def test_a_gradebooks_cell_is_blank(format_: str, rows: list[list[str]]) -> None:
    table = list(csv.reader(io.StringIO(FORMATS[format_](ClassView([ADA, BEN])))))
    assert [row[: len(rows[0])] for row in table[-len(rows) :]] == rows
    assert format_ != "canvas" or table[1][-1] == "4"


def test_gradescope_gets_no_score_to_make_a_total_of() -> None:
    (found,) = map(json.loads, gradescope_files(ClassView([ADA])).values())
    assert found.keys() == {"output", "output_format"}
    assert found["output"].startswith("not graded: mask: the grader itself failed here\n")
