"""The stand-in's expressions: as the service evaluates them, and an error where it would be a guess."""

from typing import Any

import pytest

from tests.workflows.hosted.expressions import Contexts, UnknownExpression, condition, evaluate, fill


def contexts(well: bool = True) -> Contexts:
    values = {
        "vars": {"GPU": "box", "EMPTY": ""},
        "needs": {"cpu": {"result": "success", "outputs": {"hygiene": "clean"}}},
        "matrix": {"python": "3.12"},
        "github": {"event": {"pull_request": {"number": 7}}},
    }
    return Contexts(
        values,
        {"always": lambda: True, "cancelled": lambda: False, "success": lambda: well, "failure": lambda: not well},
    )


@pytest.mark.parametrize(("expression", "value"), [
    ("vars.GPU", "box"),
    ("vars.MISSING", None),
    ("vars.MISSING.deeper", None),
    ("github.event.pull_request.number", 7),
    ("needs.cpu.outputs.hygiene == 'clean'", True),
    ("needs.cpu.outputs.hygiene == 'CLEAN'", True),
    ("needs.cpu.outputs.hygiene != 'clean'", False),
    ("vars.MISSING == ''", True),
    ("vars.MISSING != ''", False),
    ("vars.EMPTY != ''", False),
    ("vars.GPU != ''", True),
    ("vars.MISSING == 0", True),
    ("'7' == 7", True),
    ("'x' == 7", False),
    ("true == 1", True),
    ("'it''s'", "it's"),
    ("vars.GPU || 'other'", "box"),
    ("vars.EMPTY || 'other'", "other"),
    ("vars.EMPTY && 'other'", ""),
    ("vars.GPU && 'other'", "other"),
    ("!vars.GPU", False),
    ("!(vars.EMPTY || false)", True),
    ("!cancelled() && needs.cpu.result != 'skipped'", True),
    ("false && true || true", True),
    ("true || true && false", True),
    ("-1.5", -1.5),
    ("null", None),
])  # fmt: skip
def test_an_expression_has_the_value_that_the_service_gives_it(expression: str, value: Any) -> None:
    assert evaluate(expression, contexts()) == value


@pytest.mark.parametrize("expression", [
    "", "vars.GPU =", "vars.GPU == ", "(vars.GPU", "vars.GPU vars.GPU", "contains(vars.GPU, 'b')", "hashFiles()",
    "secrets.KEY", "vars.GPU < 3", "vars['GPU']", "vars.*", 'vars.GPU == "box"', "needs.cpu == 'x'", "$x",
])  # fmt: skip
def test_what_it_does_not_know_is_an_error(expression: str) -> None:
    with pytest.raises(UnknownExpression):
        evaluate(expression, contexts())


def test_in_a_text_every_expression_is_filled_in() -> None:
    text = "a-${{ github.event.pull_request.number }}-${{ vars.MISSING }}-${{ true }}-${{matrix.python}}"
    assert fill(text, contexts()) == "a-7--true-3.12"
    with pytest.raises(UnknownExpression):
        fill("${{ needs.cpu }}", contexts())


@pytest.mark.parametrize(("text", "well", "failed"), [
    (True, True, False),
    ("vars.GPU", True, False),
    ("${{ vars.GPU != '' }}", True, False),
    ("vars.EMPTY", False, False),
    ("always()", True, True),
    ("failure()", False, True),
    ("!cancelled()", True, True),
    ("${{ !cancelled() && vars.GPU }}", True, True),
    ("success() || failure()", True, True),
])  # fmt: skip
def test_a_condition_asks_that_all_went_well_unless_it_says_otherwise(text: str, well: bool, failed: bool) -> None:
    assert condition(text, contexts(True)) is well
    assert condition(text, contexts(False)) is failed


def test_a_condition_that_mixes_text_and_expressions_is_an_error() -> None:
    with pytest.raises(UnknownExpression):
        condition("${{ vars.GPU }} == 'box'", contexts())
