"""Loops are found in what ran, and unrolled they are what ran."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.student.explain_trace import Item, Loop, fold


def unrolled(items: tuple[Item, ...]) -> list[int]:
    steps: list[int] = []
    for item in items:
        steps += unrolled(item.body) * item.times if isinstance(item, Loop) else [item]
    return steps


GROWS = [step for t in range(6) for step in (10 + t, 1)]  # steps 10, 11, 12 … are one line with growing shapes


@pytest.mark.parametrize(("order", "folded"), [
    pytest.param([0, 1, 2, 1], (0, 1, 2, 1), id="what runs once stays"),
    pytest.param([9, *[1, 2] * 50, 8], (9, Loop((1, 2), 50, True), 8), id="a loop, and what stands around it"),
    pytest.param([0, *[*[1] * 4, 2] * 3, 5], (0, Loop((Loop((1,), 4, True), 2), 3, True), 5), id="a loop in a loop"),
    pytest.param([1, 2, 1, 2, 3] * 3, (Loop((Loop((1, 2), 2, True), 3), 3, True),), id="of two steps in a loop of two"),
    pytest.param(GROWS, (Loop((10, 1), 6, False),), id="rounds whose shapes grow are rounds of the same lines"),
    pytest.param([10, 1, 10, 10, 1, 10, 10, 10, 1], (Loop((10, 1), 3, False),), id="a first round may be a single step"),
    pytest.param([step for _ in range(3) for step in (*range(10, 15), 1)], (Loop((Loop((10,), 5, False), 1), 3, True),),
        id="a growing loop inside one that repeats"),
])  # fmt: skip
def test_rounds_of_the_same_lines_are_a_loop(order: list[int], folded: tuple[Item, ...]) -> None:
    assert fold(order, lambda i: 10 if 10 <= i < 20 else i) == folded


def first_rounds(items: tuple[Item, ...]) -> list[int]:
    return [step for item in items for step in (first_rounds(item.body) if isinstance(item, Loop) else [item])]


def all_alike(items: tuple[Item, ...]) -> bool:
    return all(item.alike and all_alike(item.body) for item in items if isinstance(item, Loop))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=60))
def test_nothing_is_lost_and_nothing_added(order: list[int]) -> None:
    folded = fold(order, lambda i: i)
    shown, rest = first_rounds(folded), iter(order)
    assert all(step in rest for step in shown)  # in their order
    assert set(shown) == set(order)
    if all_alike(folded):
        assert unrolled(folded) == order
