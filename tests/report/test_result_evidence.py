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


def test_each_check_stands_at_its_line_with_what_is_its_own():
    raised = "raised KeyError on line 3"
    checks = (
        check("splits", "error", "split", raised), check("keeps", "passed", "split"), check("merges", "error", "merge", raised)
    )  # fmt: skip
    functions = (
        FunctionResult(name="split", state="wrong", check="splits", evidence=raised),
        FunctionResult(name="merge", state="waiting", waits_for="split", check="merges", evidence=raised),
    )
    result = ExerciseResult(id="dance", score=0, max_score=3, checks=checks, functions=functions)
    _, told = evidence_of(result, AttemptSource("a.py", SOURCE))
    assert {each.id: (each.line, each.evidence) for each in told} == {
        "splits": (3, raised), "keeps": (1, ""), "merges": (6, "waits for split, which it uses")
    }  # fmt: skip


@pytest.mark.parametrize(("says", "seen", "sentence"), [
    ("not right yet", "3 values differ", "split: not right yet. 3 values differ."),
    ("You did not scale.", "what is that factor made of?", "split: You did not scale. What is that factor made of?"),
    ("not right yet", "nobody sees it!", "split: not right yet. Nobody sees it!"),
])  # fmt: skip
def test_it_has_one_mark_at_the_end_of_each_part(says: str, seen: str, sentence: str) -> None:
    assert FunctionEvidence(function="split", state="wrong", says=says, evidence=seen).sentence == sentence
