"""`course verify`: answers that say nothing earn nothing, in any course, and where they do, the claim says with which checks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from manyheads.authoring.verify.claim import Claim
from manyheads.authoring.verify.form_claims import verify_empty
from manyheads.box.level import Box
from manyheads.course import load_course
from manyheads.judge import run_checks
from manyheads.judge.run_checks import Catalogue

TESTS = Path(__file__).parents[1]


def claims_about(folder: Path, box: Box) -> list[Claim]:
    course = load_course(folder)
    return list(verify_empty(course, Catalogue(course), box, course.exercises[0]))


def test_what_says_nothing_passes_no_check_and_wrong_numbers_keep_what_is_form(box: Box) -> None:
    for claim in claims_about(TESTS / "tiny_course", box):
        assert (claim.held, claim.failures) == (claim.total, ())


def test_where_it_passes_the_claim_says_what_it_earns_and_with_which_checks(box, monkeypatch):
    def nobody(targets: Sequence[str], *runners: object) -> Mapping[str, str]:
        return {}

    monkeypatch.setattr(run_checks, "says_nothing", nobody)
    nothing, wrong = claims_about(TESTS / "tiny_course", box)
    for way in ("gives zeros", "gives its argument", "gives noise of its own"):
        assert f"an attempt that {way} earns 2 with shape, refuses_nothing" in nothing.failures
    assert not any("gives NaN" in failure for failure in nothing.failures)  # which is seen in each answer
    assert wrong.kept


def test_where_wrong_numbers_lose_what_is_form_the_claim_says_so(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    def everybody(targets: Sequence[str], *runners: object) -> Mapping[str, str]:
        return dict.fromkeys(targets, "says nothing")

    monkeypatch.setattr(run_checks, "says_nothing", everybody)
    nothing, wrong = claims_about(TESTS / "tiny_course", box)
    assert nothing.kept
    assert "an attempt that scales its numbers fails shape, refuses_nothing" in wrong.failures
    assert "an attempt that gives one wrong number fails shape, refuses_nothing" in wrong.failures
