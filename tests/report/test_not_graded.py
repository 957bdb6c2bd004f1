"""What the grader itself could not judge has no points anywhere, and is never a 0."""

import csv
import io
import json
import re
from collections.abc import Sequence
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

FAILED_ITSELF = "The grader itself failed here; this is not your fault."


def exercise(id_: str, score: float | None = 2) -> ExerciseResult:
    """Of 2 points. None: a check could not be run, and the other one passed."""
    evidence = "" if score == 2 else FAILED_ITSELF
    late = make.check("merge", (score or 1) - 1, 1, "skipped" if score is None else "failed", evidence=evidence)
    return make.exercise(id_, make.check("split", 1), late, score=score)


def graded(student: str, *exercises: ExerciseResult) -> Result:
    return make.result(student, *exercises, assignment="heads", seed=7)


ADA = graded("ada", exercise("dance"), exercise("mask", None))
BEN = graded("ben", exercise("dance"), exercise("mask", 1))
CAT = graded("cat", exercise("dance", None), exercise("mask", None))


def table(format_: str, results: Sequence[Result]) -> list[list[str]]:
    return list(csv.reader(io.StringIO(FORMATS[format_](ClassView(results)))))


def test_a_result_with_such_an_exercise_has_no_total() -> None:
    assert [(r.score, r.max_score, r.not_graded) for r in (ADA, BEN)] == [(None, 4, ("mask",)), (3, 4, ())]
    assert json.loads(ADA.model_dump_json())["exercises"][1]["score"] is None
    assert Result.model_validate_json(ADA.model_dump_json()) == ADA
    found = graded("ada", exercise("dance"), exercise("mask", None).model_copy(update={"excused": True}))
    assert (found.score, found.max_score, found.not_graded) == (2, 2, ()), "one that is excused counts for nothing"


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
    assert "mask not graded Not graded: the grader itself failed here. That is not your fault." in text
    assert "does" not in text.partition("? mask")[2]
    said = [" ".join(line.split()) for line in make.printed(exercise_report(ADA.exercises[1]), 80)]
    assert said[0] == "? mask ? / 2"
    assert " ".join(said[1:]).startswith("Not graded: the grader itself failed here. That is not your fault.")


def test_markdown_and_feedback_say_it_in_place_of_points() -> None:
    text = results_section("Heads", [ADA])
    assert text.startswith("## Heads: not graded: 1 of 2\n")
    assert "| ? | mask | not graded |" in text
    assert "0 / " not in text
    assert "not graded: 1 of 2" in feedback_markdown(ADA)
    assert (one_exercise(ADA, "dance").score, one_exercise(ADA, "mask").score) == (2, None)


def test_a_pull_request_is_neither_right_nor_wrong_for_it() -> None:
    nothing = "none"
    assert verdict([ADA], nothing, ()) == ("neutral", "not graded: 1 of 2")
    wrong = graded("ada", exercise("dance", 1), exercise("mask", None))
    assert verdict([wrong], nothing, ())[0] == "failure"
    right_beside = verdict([ADA], nothing, {("heads", "mask")})
    assert right_beside == ("success", "not graded: 1 of 2")
    assert why_not_on_a_gpu([CAT], ()) == "", "one of its checks passed"


def test_csv_leaves_the_cell_blank() -> None:
    assert [row[:5] for row in table("csv", [ADA])[1:]] == [["ada", "heads", "dance", "2", "2"], ["ada", "heads", "mask", "", "2"]]  # fmt: skip


@pytest.mark.parametrize("format_", ["canvas", "moodle"])
def test_a_gradebook_gets_a_blank_for_a_total_that_there_is_not(format_: str) -> None:
    rows = table(format_, [ADA, BEN])
    assert {row[0]: row[-1] for row in rows[-2:]} == {"ada": "", "ben": "3"}
    assert format_ == "moodle" or rows[1][-1] == "4"


def test_gradescope_gets_no_score_to_make_a_total_of() -> None:
    (found,) = map(json.loads, gradescope_files(ClassView([ADA])).values())
    assert found.keys() == {"output", "output_format"}
    assert found["output"].startswith("not graded: mask: the grader itself failed here\n")
