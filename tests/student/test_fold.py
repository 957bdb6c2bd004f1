"""Loops are found in what ran, and unrolled they are what ran."""

from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.student.explain_trace import Item, Loop, fold


def unrolled(items: tuple[Item, ...]) -> list[int]:
    steps: list[int] = []
    for item in items:
        steps += unrolled(item.body) * item.times if isinstance(item, Loop) else [item]
    return steps


def test_what_runs_once_stays() -> None:
    assert fold([0, 1, 2, 1], lambda i: i) == (0, 1, 2, 1)


def test_a_loop_and_what_stands_around_it() -> None:
    assert fold([9, *[1, 2] * 50, 8], lambda i: i) == (9, Loop((1, 2), 50, True), 8)


def test_a_loop_in_a_loop() -> None:
    inner = Loop((1,), 4, True)
    assert fold([0, *[*[1] * 4, 2] * 3, 5], lambda i: i) == (0, Loop((inner, 2), 3, True), 5)


def test_a_loop_of_two_steps_in_a_loop_of_two() -> None:
    inner = Loop((1, 2), 2, True)
    assert fold([1, 2, 1, 2, 3] * 3, lambda i: i) == (Loop((inner, 3), 3, True),)


def test_rounds_whose_shapes_grow_are_rounds_of_the_same_lines() -> None:
    """Steps 10, 11, 12 … are one line with growing shapes."""
    order = [step for t in range(6) for step in (10 + t, 1)]
    assert fold(order, lambda i: min(i, 10)) == (Loop((10, 1), 6, False),)


def test_the_first_round_of_a_growing_loop_may_be_a_single_step() -> None:
    order = [10, 1, 10, 10, 1, 10, 10, 10, 1]
    assert fold(order, lambda i: i) == (Loop((10, 1), 3, False),)


def test_a_growing_loop_inside_a_loop_that_repeats() -> None:
    order = [step for _ in range(3) for step in (*range(10, 15), 1)]
    (outer,) = fold(order, lambda i: min(i, 10))
    assert isinstance(outer, Loop)
    assert (outer.times, outer.alike) == (3, True)
    assert outer.body == (Loop((10,), 5, False), 1)


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
