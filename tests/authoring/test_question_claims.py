"""The claims about questions: they hold for a course that is right, and each falls where it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from manyheads.authoring.verify import question_claims
from manyheads.authoring.verify.claim import Claim
from manyheads.authoring.verify.question_claims import verify_questions
from manyheads.box.level import Box
from manyheads.course import Course, Exercise
from manyheads.student import ask_questions
from manyheads.student.question import Question
from manyheads.student.question_versions import Material

Claims = Callable[[], list[Claim]]


@pytest.fixture
def claims(tiny: Course, box: Box, running_mean: Exercise) -> Claims:
    return lambda: list(verify_questions(tiny, box, running_mean, 1))


def test_every_claim_holds_for_the_tiny_course(claims: Claims) -> None:
    assert [claim.says for claim in claims() if not claim.kept or not claim.total] == []


def test_too_few_templates_are_told(claims: Claims, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_claims, "TEMPLATES", {"easy_row": ask_questions.TEMPLATES["easy_row"]})
    fit, *_ = claims()
    assert (fit.kept, fit.failures) == (False, ("only easy_row",))


def test_a_question_whose_right_option_another_run_does_not_show_is_told(
    claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = ask_questions.TEMPLATES["positions_moved"]

    def false(material: Material) -> Iterator[Question | None]:
        for question in true(material):
            if question is not None:
                shown = [replace(o, shows="nowhere") if o.shows == question.wanted else o for o in question.options]
                yield replace(question, options=tuple(shown), wanted="nowhere")

    monkeypatch.setattr(ask_questions, "TEMPLATES", {**ask_questions.TEMPLATES, "positions_moved": false})
    _, proved, *_ = claims()
    assert not proved.kept
    assert proved.failures[0].startswith("positions_moved: running_mean(x) runs with T = 4.")
