"""Faults that the text of a function shows: a pair that is returned in the other order."""

import pytest

from manyheads.box.worker.result_structure import Form
from manyheads.judge.definition_faults import return_order_advice
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
