"""The name that is meant by a misspelt one, from the text and torch's own names alone."""

import pytest

from manyheads.box.worker.answers import Raised
from manyheads.judge.advice import did_you_mean

SOURCE = """import torch
import torch.nn.functional as F
from torch import nn

def scores(query, keys):
    return query @ keys.trasnpose(-2, -1) + torch.arrange(3) + F.sofmax(query) + quary + rnage(3)

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_query = nn.Linear(2, 2)

    def forward(self, x):
        return self.W_qurey(x) + x.zzzzz + self.w_query(x)
"""


def raised(message: str, line: int | None, type_: str = "AttributeError") -> Raised:
    return Raised(type_, (type_, "Exception"), message, "call", line)


@pytest.mark.parametrize(("message", "line", "says"), [
    pytest.param("'Tensor' object has no attribute 'trasnpose'", 6, "transpose, where it says trasnpose", id="of a tensor"),
    pytest.param("module 'torch' has no attribute 'arrange'", 6, "arange, where it says arrange", id="of torch"),
    pytest.param("module 'torch.nn.functional' has no attribute 'sofmax'", 6, "softmax, where it says sofmax", id="of torch.nn.functional"),
    pytest.param("'Head' object has no attribute 'W_qurey'", 14, "W_query, where it says W_qurey", id="of the student's module"),
    pytest.param("'Head' object has no attribute 'w_query'", 14, "W_query, where it says w_query", id="in capitals"),
    pytest.param("name 'quary' is not defined", 6, "query, where it says quary", id="a name"),
    pytest.param("name 'rnage' is not defined", 6, "range, where it says rnage", id="one of Python's own"),
    pytest.param("'Tensor' object has no attribute 'zzzzz'", 14, "", id="nothing near"),
    pytest.param("'Tensor' object has no attribute 'reshap'", 6, "", id="what the line does not have"),
    pytest.param("'Tensor' object has no attribute 'trasnpose'", None, "", id="no line"),
    pytest.param("'Tensor' object has no attribute 'trasnpose'", 9, "", id="another line"),
    pytest.param("module 'os' has no attribute 'arrange'", 6, "", id="of a module that is not torch's"),
    pytest.param("name 'transpose' is wrong", 6, "", id="another message"),
])  # fmt: skip
def test_the_name_that_is_meant(message: str, line: int | None, says: str) -> None:
    assert did_you_mean(SOURCE, raised(message, line)) == (f"Did you mean {says}?" if says else "")


def test_an_attempt_does_not_choose_the_word() -> None:
    """It may raise what it likes: only a name that stands on the line is looked up."""
    for word in ("arange", "softmaxx", "secret_0123"):
        assert did_you_mean("def f(): g()\n", raised(f"'Tensor' object has no attribute '{word}'", 1)) == ""
    long = "x" * 10_000
    assert did_you_mean(f"def f(): x.{long}\n", raised(f"'Tensor' object has no attribute '{long}'", 1)) == ""
