"""The stand-in's expressions: as the service evaluates them, and an error where it would be a guess."""

from typing import Any

import pytest

from tests.workflows.hosted.expressions import Contexts, UnknownExpression, condition, evaluate, fill


def contexts(well: bool = True) -> Contexts:
    values = {
        "vars": {"GPU": "box", "EMPTY": ""},
        "needs": {"cpu": {"result": "success", "outputs": {"hygiene": "clean", "artifact-id": "7"}}},
        "github": {"event": {"pull_request": {"number": 7}}},
    }
    status = {"always": lambda: True, "cancelled": lambda: False, "success": lambda: well, "failure": lambda: not well}
    return Contexts(values, status)


@pytest.mark.parametrize(("expression", "value"), [
    ("vars.GPU", "box"),
    ("vars.MISSING.deeper", None),
    ("needs.cpu.outputs.artifact-id", "7"),
    ("github.event.pull_request.number || github.event.inputs.pull_request", 7),
    ("needs.cpu.outputs.hygiene == 'CLEAN'", True),
    ("needs.cpu.outputs.hygiene != 'clean'", False),
    ("vars.MISSING == ''", True),
    ("vars.MISSING != ''", False),
    ("vars.EMPTY != ''", False),
    ("vars.GPU != ''", True),
    ("'it''s'", "it's"),
    ("vars.EMPTY || 'other'", "other"),
    ("vars.EMPTY && 'other'", ""),
    ("!(vars.EMPTY || cancelled())", True),
    ("!cancelled() && needs.cpu.result != 'skipped'", True),
    ("failure() && always() || always()", True),
])  # fmt: skip
def test_an_expression_has_the_value_that_the_service_gives_it(expression: str, value: Any) -> None:
    assert evaluate(expression, contexts()) == value


@pytest.mark.parametrize("expression", [
    "", "vars.GPU =", "vars.GPU == ", "(vars.GPU", "vars.GPU vars.GPU", "contains(vars.GPU, 'b')", "hashFiles()",
    "secrets.KEY", "vars.GPU < 3", "vars['GPU']", "vars.*", 'vars.GPU == "box"', "$x", "1",
])  # fmt: skip
def test_what_it_does_not_know_is_an_error(expression: str) -> None:
    with pytest.raises(UnknownExpression):
        evaluate(expression, contexts())


def test_in_a_text_every_expression_is_filled_in() -> None:
    text = "a-${{ github.event.pull_request.number }}-${{ vars.MISSING }}-${{ always() }}-${{vars.GPU}}"
    assert fill(text, contexts()) == "a-7--true-box"
    with pytest.raises(UnknownExpression):
        fill("${{ needs.cpu }}", contexts())


@pytest.mark.parametrize(("text", "well", "failed"), [
    (True, True, False),
    ("${{ vars.GPU != '' }}", True, False),
    ("vars.EMPTY", False, False),
    ("failure()", False, True),
    ("${{ !cancelled() && vars.GPU }}", True, True),
])  # fmt: skip
def test_a_condition_asks_that_all_went_well_unless_it_says_otherwise(text: str, well: bool, failed: bool) -> None:
    assert condition(text, contexts(True)) is well
    assert condition(text, contexts(False)) is failed
    with pytest.raises(UnknownExpression):
        condition("${{ vars.GPU }} == 'box'", contexts())
