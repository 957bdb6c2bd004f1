"""Functions that are not defined or not written get a location, in a notebook with its cell."""

import pytest

from manyheads.checks.explain import LIMIT, joined
from manyheads.checks.hidden_check import CheckOutcome, Layer
from manyheads.judge.locate_misconceptions import LocatedMisconception
from manyheads.judge.public_findings import FunctionVerdict
from manyheads.judge.result_parts import check_result, diagnosed_result, function_result
from manyheads.result import Diagnosed
from manyheads.submission import Source

IN_A_CLASS = "class A:\n    def mean(x):\n        return x.mean()\n"
STANDS = (
    "mean stands on line 2 inside the `class` on line 1, which keeps it from being seen. Move it "
    "to the left margin."
)
INTERFACE = Diagnosed(
    id="interface", title="A name differs.", hint="Letter by letter?", function="mean"
)
TWO_CELLS = Source("a.ipynb", "x = 1\ny = 2\nz = 3\n", cells=(1, 3))


def test_a_name_that_is_written_rightly_is_not_said_to_differ() -> None:
    undefined = [FunctionVerdict(name, "undefined") for name in ("mean", "total")]
    located = LocatedMisconception(INTERFACE, function="mean")
    source = Source("a.py", IN_A_CLASS)
    functions = [function_result(verdict, source) for verdict in undefined]
    assert [function.evidence for function in functions] == [STANDS, ""]
    diagnosed = diagnosed_result(located, functions, None)
    assert (diagnosed.title, diagnosed.hint) == (
        "mean is not there once the file has run.",
        STANDS,
    )
    elsewhere = [function_result(verdict, Source("a.py", "x = 1\n")) for verdict in undefined]
    assert diagnosed_result(located, elsewhere, None) == INTERFACE


@pytest.mark.parametrize(
    ("text", "state"),
    [
        pytest.param("", "unwritten", id="an empty file"),
        pytest.param("\n# later\n", "unwritten", id="a remark alone"),
        pytest.param("import torch\n", "undefined", id="a file with a line of code"),
    ],
)
def test_in_an_empty_file_nothing_is_renamed(text: str, state: str) -> None:
    verdict = FunctionVerdict("attend", "undefined", near="attent")
    result = function_result(verdict, Source("a.py", text))
    assert result.state == state
    assert result.near == ("attent" if state == "undefined" else "")


def test_without_a_text_an_undefined_function_stays_undefined() -> None:
    verdict = FunctionVerdict("attend", "undefined", near="attent")
    result = function_result(verdict, Source("", missing=True))
    assert (result.state, result.evidence, result.near) == ("undefined", "", "attent")


def test_what_is_written_beside_a_stub_is_told_if_no_other_evidence_is() -> None:
    source = Source(
        "a.py",
        "def mean(x):\n    return x.mean()\n\ndef mean(x):\n    raise NotImplementedError()\n",
    )
    verdict = FunctionVerdict("mean", "unwritten")
    assert function_result(verdict, source).evidence.startswith("what is written on line 1 is not")
    begun = FunctionVerdict("mean", "unwritten", evidence="its forward is not written yet")
    assert function_result(begun, source).evidence == "its forward is not written yet"


def test_the_usual_repair_is_whole_beside_a_long_message() -> None:
    outcome = CheckOutcome("a", "a", Layer.VALUES, 1, "", "error", "m" * LIMIT)
    evidence = joined(outcome.evidence, "After a transpose write .reshape(…) for .view(…).")
    source = Source("a.py", "")
    assert check_result(outcome, "mean", source, evidence).evidence == evidence
    assert check_result(outcome, "mean", source).evidence == outcome.evidence


def test_lines_in_the_evidence_of_a_notebook_are_lines_of_its_cells() -> None:
    outcome = CheckOutcome("a", "a", Layer.VALUES, 1, "", "error", "raised ValueError on line 3")
    in_its_cell = "raised ValueError on line 1 of code cell 2"
    assert check_result(outcome, "mean", TWO_CELLS).evidence == in_its_cell
    verdict = FunctionVerdict("mean", "wrong", evidence=outcome.evidence)
    assert function_result(verdict, TWO_CELLS).evidence == in_its_cell
