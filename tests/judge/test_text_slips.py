"""Slips that the text of a function shows, where it gives a wrong answer and raises nothing."""

import time

import pytest

from manyheads.judge.slips_in_function_text import slip_behind_answer
from manyheads.submission import Source

VALUES, SHAPE = "4 of 81 values differ", "the output should have shape (2, 3); yours has (2, 9)"
FORWARD = """class M:
    def __init__(self):
        self.m = self.m[1:]
    def forward(self, x):
"""


def slip(body: str, evidence: str = VALUES) -> str:
    """The sentence about a method with this body, which begins on line 5."""
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    return slip_behind_answer(Source("attempt.py", FORWARD + lines).definition("M"), evidence)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(
            "for i in range(3):\n    m[i] = 1\n    return m",
            "The `return` on line 7 stands inside the loop that begins on line 5",
            id="a return in a loop",
        ),
        pytest.param(
            "for i in x:\n    if i:\n        continue\n    return i", "", id="a loop that searches"
        ),
        pytest.param("for i in x:\n    if i:\n        return i", "", id="a return in some turns"),
        pytest.param(
            "self.m = self.m[:3]\nreturn self.m",
            "Line 5 replaces `self.m` by a part of itself",
            id="a part of an attribute",
        ),
        pytest.param("m = self.m[:3]\nreturn m", "", id="a part with a name of its own"),
        pytest.param(
            "k = k.view(3)\nv = k.view(3)\nreturn k, v",
            "Line 6 has the same right side as line 5: is `v` meant where it says `k`?",
            id="a pasted line",
        ),
        pytest.param("k = x.view(3)\nv = x.view(3)\nreturn k, v", "", id="two of one value"),
        pytest.param(
            "if x:\n    y = a(x)\ny = b(x)\nreturn y",
            "`y`, set on line 6, is replaced on line 7 before anything reads it: the code below "
            "the `if` on line 5",
            id="an else that is missing",
        ),
        pytest.param("if x:\n    y = a(x)\nelse:\n    y = b(x)\nreturn y", "", id="an else"),
        pytest.param("if x:\n    y = a(x)\ny = b(y)\nreturn y", "", id="a value that is read"),
        pytest.param(
            "masked = x.masked_fill(m, 0)\nreturn x",
            "`masked`, which is set on line 5, is never used",
            id="a value that nothing reads",
        ),
        pytest.param("B = 3\nreturn x", "", id="a number that nothing reads"),
        pytest.param(
            "def inner():\n    return y\ny = a(x)\nreturn inner()", "", id="read in a function"
        ),
        pytest.param(
            "for i in x:\n    m[i, i - w + 1 : i + 1] = 1\nreturn m",
            "Can `i - w + 1` on line 6 be below 0?",
            id="a start that may be negative",
        ),
        pytest.param("for i in x:\n    m[max(0, i - w) : i] = 1", "", id="a start that is bounded"),
        pytest.param("for i in x:\n    m[i * 2 : i] = 1", "", id="a start without a difference"),
        pytest.param("return m[total - T :]", "", id="a start outside of loops"),
        pytest.param(
            "w = x @ x.mT\nreturn torch.sigmoid(w) @ x",
            "`sigmoid` on line 6 turns each number into one between 0 and 1 by itself",
            id="sigmoid in place of softmax",
        ),
        pytest.param(
            "return x.log_softmax(-1) @ x",
            "`log_softmax` on line 5 gives the logarithms of shares",
            id="log_softmax in place of softmax",
        ),
        pytest.param("return x.log_softmax(-1).exp() @ x", "", id="shares by way of logarithms"),
    ],
)
def test_a_slip_is_read_in_the_text(body: str, says: str) -> None:
    assert slip(body).startswith(says)
    assert bool(slip(body)) == bool(says)


def test_a_list_that_grows_in_the_inner_loop_is_named_if_the_shape_is_wrong() -> None:
    nested = "for i in x:\n    for j in i:\n        parts.append(j)\nreturn cat(parts)"
    assert "`parts` grows on line 7 in each turn of the inner loop" in slip(nested, SHAPE)
    assert slip(nested) == ""
    assert slip("for i in x:\n    parts.append(i)\nreturn cat(parts)", SHAPE) == ""


def test_a_start_counts_only_if_numbers_are_wrong() -> None:
    assert slip("for i in x:\n    m[i - w : i] = 1", SHAPE) == ""


LONG = {
    "depth": f"k = k{'.a()' * 900}\nm[k{' - 1' * 900} : 2] = 1",
    "conditions": "if x:\n    y = a()\n" * 3000 + "return y",
    "loops": "for i in x:\n    for j in i:\n        k += 1\n" * 2000 + "return k",
    "assignments": "k = a(k)\n" * 9000 + "return k",
}


@pytest.mark.parametrize("body", LONG.values(), ids=LONG)
@pytest.mark.parametrize("evidence", [VALUES, SHAPE])
def test_a_long_text_takes_no_long_time(body: str, evidence: str) -> None:
    started = time.process_time()
    assert slip(body, evidence) == ""
    assert time.process_time() - started < 4
