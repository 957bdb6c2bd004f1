"""At the real course: code that is not seen, left open or misspelt is told with its place, graded and at home alike."""

import pytest

from manyheads.report.words import function_reports
from manyheads.submission import AttemptSource
from manyheads.submission.read import read_notebook
from tests.diagnosis.both_sides import Attempt, Sides, names
from tests.make import notebook

ABOVE = """import math
def simplified_attention(x): return (x @ x.mT).softmax(-1) @ x
def attention_scores(q, k): return q @ k.mT / math.sqrt(q.shape[-1])
def attention_weights(scores): return scores.softmax(-1)
"""
ATTEND = "def attend(q, k, v): return attention_weights(attention_scores(q, k)) @ v\n"
STANDS = {
    "in a string": (f'"""\n{ATTEND}"""\n', "it stands inside the string that begins on line 5: that is text, not code."),
    "in a class": (f"class Answers:\n    {ATTEND}", "it stands on line 6 inside the `class` on line 5, which keeps it from being seen."),
    "below the main guard": (f'if __name__ == "__main__":\n    {ATTEND}', "it stands on line 6 inside the `if` on line 5"),
    "overwritten": (f"{ATTEND}attend = attend.__doc__\n", "it stands on line 5, and is no function or class once all has run."),
    "in capitals": (ATTEND.replace("attend(", "ATTEND(", 1), "the file has no such name; is ATTEND meant? Capital letters count."),
    "above a stub": (f"{ATTEND}def attend(q, k, v): raise NotImplementedError()\n", "what is written on line 5 is not seen, for the stub on line 6 counts."),
}  # fmt: skip
KINDS = {
    "async": (f"async {ATTEND}", "It is an `async def`, written on line 5, so that a call gives a coroutine: take `async` away"),
    "a class": ("class attend:\n    def __init__(self, q, k, v): self.q = q\n", "It is a class, written on line 5, and a function is asked for"),
    "a generator": (ATTEND.replace("return", "yield"), "A `yield` makes it a generator, written on line 5: return the answer"),
}  # fmt: skip


def heads(sides: Sides, attempt: Attempt, id_: str = "attention_scores") -> list[list[str]]:
    """What is said of each function, on both sides: its line, and what was seen."""
    return [[f"{r.head} {r.evidence} {r.hint}" for r in function_reports(told)] for told in sides.told(id_, attempt)]


@pytest.mark.parametrize(("below", "says"), [pytest.param(*row, id=name) for name, row in STANDS.items()])
def test_of_code_that_is_not_seen_the_place_is_told(sides: Sides, below: str, says: str) -> None:
    for told in heads(sides, ABOVE + below):
        assert told[3].startswith(f"attend: {says}"), told[3]
        assert not [line for line in told if "letter by letter" in line and "ATTEND" not in below]


@pytest.mark.parametrize(("below", "says"), [pytest.param(*row, id=name) for name, row in KINDS.items()])
def test_of_another_kind_than_is_asked_that_is_told(sides: Sides, below: str, says: str) -> None:
    for told in heads(sides, ABOVE + below):
        assert says in told[3]


def test_a_function_where_a_class_is_asked_is_told(sides: Sides) -> None:
    source = "def CausalAttention(d_in, d_out, context_length, dropout=0.0, qkv_bias=False):\n    return d_in\n"
    for told in heads(sides, source, "self_attention"):
        assert "It is a function, written on line 1, and a class is asked for" in told[0]


def test_a_class_in_place_of_a_function_in_a_notebook_has_its_cell(sides: Sides) -> None:
    found = read_notebook(notebook(ABOVE, f"async {ATTEND}"))
    for told in heads(sides, AttemptSource("a.ipynb", found.source, cells=found.cells)):
        assert "written on line 1 of code cell 2" in told[3]


def test_a_case_that_is_left_open_is_told_and_is_no_stub(sides: Sides) -> None:
    solution = sides.exercise("kv_cache").solution.read_text(encoding="utf-8")
    at = solution.index("### BEGIN SOLUTION", solution.index("def forward("))
    left = 'if cache is not None:\n            y = x\n            raise NotImplementedError("TODO")\n        '
    attempt = solution[:at] + left + solution[at:]
    for told in heads(sides, attempt, "kv_cache"):
        assert "the case that comes to this line is not written yet" in told[0]
    assert [names(told) for told in sides.told("kv_cache", attempt)] == [[], []]


def test_a_raise_that_is_left_below_the_code_is_told_with_its_line(sides: Sides) -> None:
    attempt = ABOVE + "def attend(q, k, v):\n    weights = attention_weights(attention_scores(q, k))\n"
    attempt += "    raise NotImplementedError()\n"
    for told in heads(sides, attempt):
        assert "the stub's raise on line 7 still stands below code of yours: take that line out" in told[3]
    assert [names(told) for told in sides.told("attention_scores", attempt)] == [[], []]


def test_a_misspelt_method_is_told_with_the_one_that_is_meant(sides: Sides) -> None:
    for told in heads(sides, ABOVE.replace("k.mT", "k.trasnpose(-2, -1)") + ATTEND):
        assert "Did you mean transpose, where it says trasnpose?" in told[1]
