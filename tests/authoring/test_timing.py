"""The claim that a diagnosis costs little: what it says of given seconds. Nothing here is timed."""

from __future__ import annotations

import pytest

from grader.authoring.verify.timing import claim


@pytest.mark.parametrize(("diagnosing", "kept"), [(0.0, True), (3.0, True), (3.2, False)])
def test_it_holds_up_to_three_tenths(diagnosing: float, kept: bool) -> None:
    assert claim(10.0, diagnosing).kept is kept


def test_it_says_what_was_measured() -> None:
    made = claim(10.0, 4.0)
    assert made.says == "a diagnosis adds at most 30% to the time of grading: 40% here"
    assert made.failures == ("40%",)
