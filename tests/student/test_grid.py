"""Calls are chosen whose tiles show how tiles go."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from manyheads.box.worker.messages import Call
from manyheads.student.growing_tables import grid_of
from tests.student.tiled import CALL, RECORDED, T, example_of


@pytest.mark.parametrize(
    ("better", "worse"),
    [((4, 3), (T, T)), ((4, 3), (1, 1)), ((4, 3), (9, 9)), ((4, 2), (3, 3)), ((4, 3), (6, 4))],
    ids=["one tile", "no last tile that is smaller", "no tile at all", "more tiles", "no tile is all future"],
)
def test_calls_are_chosen_whose_tiles_show_more(better: tuple[int, int], worse: tuple[int, int]) -> None:
    one, other = (grid_of(example_of(Call("summed", (*CALL.args[:2], *sides)))) for sides in (better, worse))
    assert one < other


def test_of_equal_tiles_those_are_chosen_that_bring_larger_scores() -> None:
    q, k = (torch.ones(2, T, 5) for _ in range(2))
    rising = k * torch.arange(1, T + 1)[:, None]
    flat, up = (grid_of(example_of(Call("summed", (q, each, 4, 3)))) for each in (k, rising))
    assert (flat[:2], flat[2], up[2]) == (up[:2], 0, -2 * T)
    assert grid_of(replace(RECORDED, tiled=None)) == ()
