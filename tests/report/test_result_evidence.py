"""A result as data: each check at its place, and only what is its own."""

import pytest

from manyheads.report.result_evidence import FunctionEvidence, evidence_of
from manyheads.result import CheckResult, ExerciseResult, FunctionResult, Outcome
from manyheads.submission import AttemptSource

SOURCE = """\
def split(x):
    x = x.view(2)
    return {}[x]


def merge(x):
    return split(x)
"""


def check(id_: str, outcome: Outcome, function: str, evidence: str = "") -> CheckResult:
    return CheckResult(id=id_, title=id_, outcome=outcome, score=0, max_score=1, evidence=evidence, function=function)


@pytest.fixture
def told() -> dict[str, tuple[int, str]]:
    """Of each check its line and its evidence."""
    raised = "raised KeyError on line 3"
    result = ExerciseResult(
        id="dance",
        score=0,
        max_score=3,
        checks=(
            check("splits", "error", "split", raised),
            check("keeps", "passed", "split"),
            check("merges", "error", "merge", raised),
        ),
        functions=(
            FunctionResult(name="split", state="wrong", check="splits", evidence=raised),
            FunctionResult(name="merge", state="waiting", waits_for="split", check="merges", evidence=raised),
        ),
    )
    _, checks = evidence_of(result, AttemptSource("a.py", SOURCE))
    return {each.id: (each.line, each.evidence) for each in checks}


def test_what_raised_stands_on_its_line(told: dict[str, tuple[int, str]]) -> None:
    assert told["splits"] == (3, "raised KeyError on line 3")


def test_a_check_that_passed_stands_at_its_function(told: dict[str, tuple[int, str]]) -> None:
    assert told["keeps"] == (1, "")


def test_what_waits_says_so_and_has_no_fault_of_its_own(told: dict[str, tuple[int, str]]) -> None:
    assert told["merges"] == (6, "waits for split, which it uses")


@pytest.mark.parametrize(("says", "seen", "sentence"), [
    ("not right yet", "3 values differ", "split: not right yet. 3 values differ."),
    ("You did not scale.", "what is that factor made of?", "split: You did not scale. What is that factor made of?"),
    ("not right yet", "nobody sees it!", "split: not right yet. Nobody sees it!"),
])  # fmt: skip
def test_it_has_one_mark_at_the_end_of_each_part(says: str, seen: str, sentence: str) -> None:
    assert FunctionEvidence(function="split", state="wrong", says=says, evidence=seen).sentence == sentence
