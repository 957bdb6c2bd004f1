"""Faults that the text of a function shows: a pair that is returned in the other order."""

import pytest

from manyheads.box.worker.result_form import Form
from manyheads.judge.definition_faults import (
    always_true_advice,
    call_of_helper,
    return_order_advice,
    unused_result_advice,
)
from manyheads.submission import Source

PAIR = Form("tuple", ("y", "cache"), (Form(), Form("opaque")))
TWO = Form("tuple", ("y", "lse"), (Form(), Form()))


@pytest.mark.parametrize(
    ("returned", "form", "is_exchanged"),
    [
        pytest.param("(k, v), y", PAIR, True, id="a tuple before the tensor"),
        pytest.param("[k, v], self.proj(y)", PAIR, True, id="a list before the tensor"),
        pytest.param("cache, y", PAIR, True, id="the cache by its name"),
        pytest.param("kept, y", PAIR, True, id="a name that holds a tuple"),
        pytest.param("y, (k, v)", PAIR, False, id="the order that is asked"),
        pytest.param("(k, v), cache", PAIR, False, id="two collections"),
        pytest.param("k, v", PAIR, False, id="two tensors"),
        pytest.param("y", PAIR, False, id="no pair"),
        pytest.param("(k, v), y", TWO, False, id="a form of two tensors"),
        pytest.param("(k, v), y", None, False, id="a form of one tensor"),
    ],
)
def test_a_pair_in_the_other_order_is_seen_in_the_text(
    returned: str, form: Form | None, is_exchanged: bool
) -> None:
    text = f"class M:\n    def forward(self):\n        kept = (k, v)\n        return {returned}\n"
    sentence = return_order_advice(Source("attempt.py", text), "M", form)
    assert sentence.startswith("The `return` on line 4") == is_exchanged
    assert bool(sentence) == is_exchanged


MODULE = """class M(nn.Module):
    def __init__(self):
        self.proj = nn.Linear(3, 3)
        self.kept = []
    def forward(self, x):
        {}
        return x
"""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param(
            "self.proj(x)", "The result of self.proj(…) on line 6 is not used", id="a layer"
        ),
        pytest.param("x.masked_fill(m, 0)", "The result of .masked_fill(…) on line", id="a method"),
        pytest.param("x.masked_fill_(m, 0)", "", id="in place"),
        pytest.param("x = self.proj(x)", "", id="a result that is used"),
        pytest.param("self.kept.append(x)", "", id="a method of a list"),
        pytest.param("self.look(x)", "", id="no layer"),
    ],
)
def test_a_result_that_nothing_takes_is_named(line: str, says: str) -> None:
    sentence = unused_result_advice(Source("attempt.py", MODULE.format(line)), "M")
    assert sentence.startswith(says)
    assert bool(sentence) == bool(says)


@pytest.mark.parametrize(
    ("condition", "is_named"),
    [
        pytest.param('size == "small" or "medium"', True, id="a text behind or"),
        pytest.param('size == "small" or size == "medium"', False, id="two comparisons"),
        pytest.param('size or ""', False, id="an empty text"),
    ],
)
def test_a_condition_that_is_always_true_is_named(condition: str, is_named: bool) -> None:
    source = Source("attempt.py", f"def f(size):\n    if {condition}:\n        return 1\n")
    assert ("line 2 is always true" in always_true_advice(source, "f")) == is_named


HELPER = "def mask(T):\n    return ones(T)\ndef weights(s):\n    return mask(s)\n"


@pytest.mark.parametrize(
    ("text", "name", "line", "says"),
    [
        pytest.param(HELPER, "weights", 2, "mask was called on line 4.", id="one call"),
        pytest.param(
            HELPER.replace("return mask(s)", "return mask(s) * mask(s)"),
            "weights",
            2,
            "mask was called on line 4.",
            id="two calls on one line",
        ),
        pytest.param(HELPER, "mask", 2, "", id="the function itself"),
        pytest.param(HELPER, "weights", 4, "", id="a line of its own"),
        pytest.param(
            HELPER + "def more(s):\n    return mask(s)\n", "weights", 2, "", id="two calls"
        ),
    ],
)
def test_where_a_helper_that_raised_was_called(text: str, name: str, line: int, says: str) -> None:
    assert call_of_helper(Source("attempt.py", text), name, line) == says
