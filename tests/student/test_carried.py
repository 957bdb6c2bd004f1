"""The sum that is carried from tile to tile is found among all that was computed."""

from __future__ import annotations

import torch
from torch import Tensor

from manyheads.student.tiles import carried

ALONE = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 0.5]), torch.tensor([0.25, 4.0])]
SUMS: list[tuple[int, Tensor | None]] = [(0, each) for each in ALONE]
HALF = [ALONE[0], ALONE[0] / 2 + ALONE[1], (ALONE[0] / 2 + ALONE[1]) / 2 + ALONE[2]]
OTHER = [torch.tensor([5.0, 6.0])] * 3


def found(sums: list[tuple[int, Tensor | None]] = SUMS, **series: list[Tensor]) -> list[Tensor] | None:
    count = len(sums)
    return carried([{name: each[i] for name, each in series.items() if i < len(each)} for i in range(count)], sums)


def same(a: list[Tensor] | None, b: list[Tensor]) -> bool:
    return a is not None and all(torch.allclose(x, y) for x, y in zip(a, b, strict=True))


def test_what_keeps_a_part_of_its_past_is_the_carried_sum() -> None:
    assert same(found(other=OTHER, alone=ALONE, kept=HALF, after=ALONE), HALF)


def test_a_sum_that_is_never_mended_is_one_too() -> None:
    total = list(torch.stack(ALONE).cumsum(0))
    assert same(found(kept=total), total)


def test_where_nothing_is_kept_the_sums_of_each_tile_are_shown() -> None:
    assert same(found(alone=ALONE, other=OTHER), ALONE)


def test_each_block_of_queries_starts_anew() -> None:
    sums = [(0, ALONE[0]), (2, ALONE[1]), (0, ALONE[2])]
    total = [ALONE[0], ALONE[1], ALONE[0] + ALONE[2]]
    assert same(found(sums, kept=total), total)
    assert found([(0, ALONE[0]), (2, ALONE[1])], kept=[ALONE[0], ALONE[0] + ALONE[1]]) is None


def test_the_first_sum_may_be_that_of_the_shares() -> None:
    vectors = [{}, {"kept": HALF[1]}, {"kept": HALF[2]}]
    assert same(carried(vectors, SUMS), HALF)


def test_nothing_is_found_where_it_is_not_carried_or_shares_are_unknown() -> None:
    assert found(other=OTHER) is None
    assert found([*SUMS[:2], (0, None)], kept=HALF) is None
    assert found(kept=[*HALF[:2], torch.full((2,), torch.nan)]) is None
