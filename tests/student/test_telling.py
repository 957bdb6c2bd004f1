"""Which call of an attempt is shown: the easiest to understand, unless it is right there and wrong elsewhere."""

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


def right(call: Call) -> Reply:
    return answer(2 * call.args[0])  # type: ignore[operator]


def test_what_is_right_everywhere_is_shown_in_the_easiest_call() -> None:
    assert most_telling(SMALL, right) is SMALL


def test_what_is_wrong_there_is_shown_there() -> None:
    assert most_telling(SMALL, lambda call: answer(3 * call.args[0])) is SMALL  # type: ignore[operator]


def test_what_is_wrong_elsewhere_is_shown_in_the_easiest_of_these_calls() -> None:
    def wrong_if_large(call: Call) -> Reply:
        (x,) = call.args
        assert isinstance(x, Tensor)
        return answer(2 * x if len(x) < 3 else x)

    assert most_telling(SMALL, wrong_if_large) is LARGE


def test_an_exception_is_wrong() -> None:
    def refuse_seven(call: Call) -> Reply:
        (x,) = call.args
        assert isinstance(x, Tensor)
        raised = Raised("RuntimeError", ("RuntimeError", "Exception"), "no", "call", 3)
        return Reply(raised=raised) if len(x) == 7 else right(call)

    assert most_telling(SMALL, refuse_seven) is LARGER


def test_without_another_call_nothing_is_asked() -> None:
    def never(call: Call) -> Reply:
        raise AssertionError(call)

    assert most_telling(LARGE, never) is LARGE
