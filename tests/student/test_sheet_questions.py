"""A class's questions are drawn twice before they are asked, and nobody with other code has the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.box.level import Box
from manyheads.course import Course
from manyheads.student import sheet_questions
from manyheads.student.question import Question
from manyheads.student.question_versions import Material
from manyheads.student.sheet_questions import Sheet, SheetQuestions
from manyheads.submission import Submission

CODE = """import torch
def running_mean(x):
    total = torch.cumsum(x, dim=0)
    count = torch.arange(1, len(x) + 1)
    return total / count
"""
REAL = sheet_questions.draw


def handed_in(tiny: Course, folder: Path, **sources: str) -> list[Submission]:
    submissions = []
    for student, source in sources.items():
        path = folder / student / "averages" / "01_running_mean.py"
        path.parent.mkdir(parents=True)
        path.write_text(source)
        submissions.append(Submission(student, tiny.assignments[0], path.parent))
    return submissions


def texts(sheet: Sheet) -> list[str]:
    return [each.question.text for each in sheet.asked]


def test_a_question_that_comes_out_otherwise_in_a_second_run_is_left_out(
    tiny: Course, box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ada,) = handed_in(tiny, tmp_path, ada=CODE)
    whole = SheetQuestions(tiny, box, 5).sheet(ada)
    runs = []

    def second_differs(material: Material, count: int) -> list[Question]:
        first, *others = REAL(material, count)
        runs.append(material)
        right = [replace(o, cause="Otherwise.") if o.shows == first.wanted else o for o in first.options]
        return [first if len(runs) == 1 else replace(first, options=tuple(right)), *others]

    monkeypatch.setattr(sheet_questions, "draw", second_differs)
    sheet = SheetQuestions(tiny, box, 5).sheet(ada)
    assert (len(runs), texts(sheet)) == (2, texts(whole)[1:])
    assert sheet.said == (("running_mean", "1 of 5 questions came out otherwise in a second run"),)


def test_whoever_has_other_code_gets_another_draw_and_the_same_code_the_same(
    tiny: Course, box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = CODE.replace("count", "number")
    ada, ben, cat = handed_in(tiny, tmp_path, ada=CODE, ben=CODE, cat=other)
    fixed: list[Question] = []
    draws = []

    def the_same_twice(material: Material, count: int) -> list[Question]:
        """What was drawn first, for the first draw of each code."""
        drawn = REAL(material, count)
        fixed[:] = fixed or drawn
        draws.append(material.source.source)
        return fixed if draws.count(material.source.source) <= 2 else drawn

    monkeypatch.setattr(sheet_questions, "draw", the_same_twice)
    questions = SheetQuestions(tiny, box, 5)
    first, same, another = (questions.sheet(each) for each in (ada, ben, cat))
    assert texts(first) == texts(same) != texts(another)
    assert [each.is_shared for each in (first, same, another)] == [False] * 3
    assert (first.seed, another.seed) == (5, 5 + 1_000_003)


def test_where_nothing_else_can_be_drawn_it_is_said(
    tiny: Course, box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, cat = handed_in(tiny, tmp_path, ada=CODE, cat=CODE.replace("count", "number"))
    fixed: list[Question] = []

    def always_the_same(material: Material, count: int) -> list[Question]:
        fixed[:] = fixed or REAL(material, count)
        return fixed

    monkeypatch.setattr(sheet_questions, "draw", always_the_same)
    questions = SheetQuestions(tiny, box, 5)
    assert [questions.sheet(each).is_shared for each in (ada, cat)] == [False, True]


def test_one_attempt_at_which_we_fail_costs_nobody_else_a_sheet(
    tiny: Course, box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, cat = handed_in(tiny, tmp_path, ada=CODE, cat=CODE.replace("count", "number"))

    def fails_at_ada(material: Material, count: int) -> list[Question]:
        if "count" in material.source.source:
            raise TypeError("no \x1b[31m way")
        return REAL(material, count)

    monkeypatch.setattr(sheet_questions, "draw", fails_at_ada)
    questions = SheetQuestions(tiny, box, 5)
    assert questions.sheet(ada).said == (
        ("running_mean", "the questions themselves failed here: TypeError: no [31m way"),
    )
    assert len(questions.sheet(cat).asked) == 5
