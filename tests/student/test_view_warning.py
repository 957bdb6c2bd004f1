"""A view that seems to move the tokens is doubted; one that does not is not."""

import pytest

from manyheads.box.worker.answers import Step, TensorInfo
from manyheads.judge.axes import Axes
from manyheads.student.explain_trace import view_warning

AXES = Axes({"B": 2, "T": 5, "C": 12, "nh": 3, "hd": 4})
B, T, C, NH, HD = AXES.sizes.values()


def step(name: str, before: tuple[int, ...], after: tuple[int, ...]) -> Step:
    return Step(name, (1,), (0,), (TensorInfo(before, "float32", True),), (TensorInfo(after, "float32", True),))


MOVED = "T is no longer T: a step along it was "


@pytest.mark.parametrize(("name", "before", "after", "says"), [
    pytest.param("view", (B, T, C), (B, NH, T, HD), f"{MOVED}C numbers, here it is hd", id="the wrong view"),
    pytest.param("reshape", (B, T, 3 * C), (B, NH, T, 3 * HD), MOVED, id="the wrong view of q, k and v at once"),
    pytest.param("view", (B, T, C), (B * NH, T, HD), MOVED, id="the wrong view with batch and heads in one"),
    pytest.param("view", (B, NH, T, HD), (B, T, C), MOVED, id="the wrong merge"),
    pytest.param("view", (B, T, C), (B, T, NH, HD), "", id="the right view"),
    pytest.param("reshape", (B, T, NH, HD), (B, T, C), "", id="the right merge"),
    pytest.param("view", (B, NH, T, HD), (B * NH, T, HD), "", id="batch and heads in one"),
    pytest.param("view", (B, T, C), (B * T, C), "", id="tokens of all sequences in one"),
    pytest.param("transpose", (B, T, NH, HD), (B, NH, T, HD), "", id="a transpose, which does move"),
    pytest.param("unflatten", (B, T, 3 * C), (B, T, 3, NH, HD), "", id="q, k and v apart"),
    pytest.param("view", (T, T), (1, 1, T, T), "", id="a mask"),
])  # fmt: skip
def test_a_view_that_moves_tokens_is_doubted(name, before, after, says):
    warning = view_warning(step(name, before, after), AXES)
    assert (warning.startswith(says), bool(warning)) == (True, bool(says))


def test_only_tokens_are_doubted_for_three_of_a_kind_may_be_as_many_as_the_batch() -> None:
    axes = Axes({"B": 3, "T": 5, "C": 12})
    assert view_warning(step("view", (3, 5, 36), (15, 3, 12)), axes) == ""
