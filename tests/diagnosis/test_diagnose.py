"""The page about the diagnosis has all rules in order, and evidence counts by its basis."""

import inspect
import re
from pathlib import Path

import pytest

from manyheads.diagnosis.diagnose import RULES
from manyheads.diagnosis.fault_dictionary import BASES, Basis, Candidate, Response
from tests.make import REPOSITORY


def test_the_page_has_all_rules_in_their_order() -> None:
    page = (REPOSITORY / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| .+ \| `([\w/.]+)` \|$", page, re.MULTILINE)
    files = [Path(inspect.getfile(rule)).relative_to(REPOSITORY / "manyheads") for rule, _ in RULES]
    rules = zip(RULES, files, strict=True)
    assert rows == [(rule.__name__, when, file.as_posix()) for (rule, when), file in rules]


def response(*candidates: tuple[str, Basis]) -> Response:
    """Return a response with these candidates. All evidence is from call 0."""
    listed = [
        Candidate(name, (), basis, () if basis == "explanation" else (0,))
        for name, basis in candidates
    ]
    return Response(None, {}, {}, set(), candidates=tuple(listed))


@pytest.mark.parametrize(
    ("candidates", "ids"),
    [
        pytest.param([("a", "exception"), ("b", "explanation")], ["b"], id="mutants"),
        pytest.param([("a", "explanation"), ("b", "guard")], [], id="a guard refuses the calls"),
        pytest.param(
            [("a", "explanation"), ("b", "guard"), ("c", "explanation")], ["c"], id="behind a guard"
        ),
    ],
)
def test_a_guard_sets_explanations_aside(candidates, ids) -> None:
    explanations = response(*candidates).explanations
    assert [candidate.id for candidate in explanations] == ids


def test_of_evidence_from_one_call_the_stronger_counts() -> None:
    three = response(("a", "reply"), ("b", "weak"), ("c", "exception"))
    assert three.shown_by(*BASES) == {0: "a"}
    assert three.shown_by("weak") == {0: "b"}
