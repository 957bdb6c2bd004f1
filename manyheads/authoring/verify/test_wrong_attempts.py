"""Claims about the replies of attempts.

Attempts without an answer earn nothing, wrong numbers keep points of form, and the line of a fault
is found.
"""

from __future__ import annotations

import pytest

from ...checks.hidden_check import Layer
from ...course import Exercise
from ...report.report_content import score_words
from ...result import ExerciseResult
from .plugin import NOTHING, Verified
from .wrong_programs import BehaviourAndText

claim = pytest.mark.claim
LINES = "see docs/diagnosis.md, The line"
# The share of the hygiene checks that wrong numbers may fail: some judge dropout by its values.
HYGIENE_SHARE = 0.5
LINE_SHARE = 0.8  # of five faults: two may be mended on three lines


@claim("let these checks ask every function for an answer")
def test_silent(verified: Verified, exercise: Exercise, silent: BehaviourAndText) -> None:
    """An attempt that gives no answer passes no check."""
    behaviour, text = silent
    _assert_nothing_earned(
        behaviour,
        verified.grade(exercise, text, is_short=behaviour == "never ends", diagnoses=False),
    )


@claim("let these checks ask for an answer that another input changes")
def test_empty(verified: Verified, exercise: Exercise, empty: BehaviourAndText) -> None:
    """An attempt whose answers say nothing passes no check."""
    _assert_nothing_earned(empty[0], verified.grade(exercise, empty[1], diagnoses=False))


@claim("let these checks ask for no right numbers, or give them Layer.VALUES")
def test_form(verified: Verified, exercise: Exercise, misshapen: BehaviourAndText) -> None:
    """An attempt with wrong numbers keeps its points of form."""
    behaviour, text = misshapen
    layers = {check.id: check.layer for check in verified.catalogue.checks(exercise)}
    result = verified.grade(exercise, text, diagnoses=False)
    failed = [check.id for check in result.checks if check.outcome != "passed"]
    form = [id_ for id_ in failed if layers[id_] in (Layer.SHAPE, Layer.FINITE)]
    lost = [id_ for id_ in failed if layers[id_] == Layer.HYGIENE]
    keeps = not form and len(lost) <= HYGIENE_SHARE * [*layers.values()].count(Layer.HYGIENE)
    assert keeps, f"an attempt that {behaviour} fails {', '.join([*form, *lost])}"


@claim(LINES, share=LINE_SHARE)
def test_line(verified: Verified, exercise: Exercise, fault: int) -> None:
    """The line of a small fault is found."""
    label, verdict = _line_verdict(verified, exercise, fault)
    assert verdict in ("there", "elsewhere"), f"{label}: {verdict} is told"


@claim(LINES)
def test_no_wrong_line(verified: Verified, exercise: Exercise, fault: int) -> None:
    """No line is told where nothing is wrong."""
    label, verdict = _line_verdict(verified, exercise, fault)
    assert verdict != "wrong", label


def _line_verdict(verified: Verified, exercise: Exercise, number: int) -> tuple[str, str]:
    """Return a description of the fault with this number, and how well a search locates it.

    The case is skipped if the exercise has fewer faults.
    """
    bench = verified.faults(exercise)
    if number >= len(bench.undone):
        pytest.skip(NOTHING)
    fault = bench.undone[number]
    location = f"{fault.attempt}, line {fault.edit.line} ({fault.edit.category})"
    return f"{exercise.id}: {location}: {fault.edit.described}", bench.line_verdict(fault)


def _assert_nothing_earned(behaviour: str, result: ExerciseResult) -> None:
    passed = ", ".join(check.id for check in result.checks if check.outcome == "passed")
    assert not passed, (
        f"an attempt that {behaviour} earns {score_words(result.score)} with {passed}"
    )
