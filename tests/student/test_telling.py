"""Which call of an attempt is shown: the easiest to understand, unless it is right there and wrong elsewhere."""

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.answers import Output, Raised, Reply
from manyheads.box.worker.messages import Call
from manyheads.judge.axes import Axes
from manyheads.student.example import Example
from manyheads.student.follow import most_telling


def example(size: int, *instead: Example) -> Example:
    x = torch.ones(size)
    return Example(Call("double", (x,)), 2 * x, True, None, Axes({}), instead=instead)


LARGE, LARGER = example(5), example(7)
SMALL = example(2, LARGE, LARGER)


def answer(value: Tensor) -> Reply:
    return Reply(outputs=(Output("tensor", value, "float32", "cpu", tuple(value.shape)),))


def said(call: Call, times: dict[int, int]) -> Reply:
    """What an attempt answers that doubles, but where another factor is given for a length; 0 is an exception."""
    (x,) = call.args
    assert isinstance(x, Tensor)
    factor = times.get(len(x), 2)
    raised = Raised("RuntimeError", ("RuntimeError", "Exception"), "no", "call", 3)
    return answer(factor * x) if factor else Reply(raised=raised)


@pytest.mark.parametrize(("times", "shown"), [
    pytest.param({}, SMALL, id="right everywhere: the easiest call"),
    pytest.param({2: 3, 5: 3, 7: 3}, SMALL, id="wrong there: the same"),
    pytest.param({5: 1, 7: 1}, LARGE, id="wrong elsewhere: the easiest of these calls"),
    pytest.param({7: 0}, LARGER, id="an exception is wrong"),
])  # fmt: skip
def test_the_easiest_call_that_is_wrong_is_shown(times: dict[int, int], shown: Example) -> None:
    assert most_telling(SMALL, lambda call: said(call, times)) is shown


def test_without_another_call_nothing_is_asked() -> None:
    assert most_telling(LARGE, lambda call: pytest.fail(str(call))) is LARGE
