"""docs/diagnosis.md lists all rules in order, and stronger evidence replaces weaker evidence."""

import inspect
import re
from pathlib import Path

import pytest

from manyheads.diagnosis.diagnose import RULES
from manyheads.diagnosis.fault_dictionary import BASES, Basis, Candidate, Response
from tests.make import REPOSITORY


def test_the_documentation_lists_all_rules_of_the_diagnosis_in_order() -> None:
    page = (REPOSITORY / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| .+ \| `([\w/.]+)` \|$", page, re.MULTILINE)
    files = [Path(inspect.getfile(rule)).relative_to(REPOSITORY / "manyheads") for rule, _ in RULES]
    rules = zip(RULES, files, strict=True)
    assert rows == [(rule.__name__, when, file.as_posix()) for (rule, when), file in rules]


def response(*candidates: tuple[str, Basis]) -> Response:
    """Return a response with these candidates: (id, basis). All evidence is from call 0."""
    listed = [
        Candidate(name, (), basis, () if basis == "explanation" else (0,))
        for name, basis in candidates
    ]
    return Response(None, {}, {}, set(), candidates=tuple(listed))


@pytest.mark.parametrize(
    ("candidates", "explanation_ids"),
    [
        pytest.param([("a", "exception"), ("b", "explanation")], ["b"], id="no guard"),
        pytest.param(
            [("a", "explanation"), ("b", "guard")], [], id="an explanation before a guard"
        ),
        pytest.param(
            [("a", "explanation"), ("b", "guard"), ("c", "explanation")],
            ["c"],
            id="an explanation after a guard",
        ),
    ],
)
def test_a_guard_discards_the_explanations_listed_before_it(candidates, explanation_ids) -> None:
    explanations = response(*candidates).explanations
    assert [candidate.id for candidate in explanations] == explanation_ids


def test_the_strongest_evidence_of_a_call_counts() -> None:
    candidates = response(("a", "reply"), ("b", "weak"), ("c", "exception"))
    assert candidates.shown_by(*BASES) == {0: "a"}
    assert candidates.shown_by("weak") == {0: "b"}
