"""A table is found within a larger one by its numbers, and shares are known as exponentials of its numbers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from manyheads.student.windows import Box, fit, place

WHOLE = torch.randn(9, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
BOX = Box(3, 2, 4, 3)
INSIDE = BOX.of(WHOLE)


def hidden(table: Tensor, *cells: tuple[int, int]) -> Tensor:
    table = table.clone()
    for cell in cells:
        table[cell] = -math.inf
    return table


@pytest.mark.parametrize(
    "table",
    [
        INSIDE,
        INSIDE.float() / 3,
        hidden(INSIDE, (0, 0), (0, 1), (0, 2)),
        INSIDE.masked_fill(torch.ones(4, 3).triu(1).bool(), -1e9),
    ],
    ids=["as it is", "scaled", "a hidden row", "hidden by a low number"],
)
def test_a_window_is_found_whatever_its_scale_and_whatever_is_hidden(table: Tensor) -> None:
    found = place(table, WHOLE)
    assert found is not None
    assert found.box == BOX


def test_the_factor_is_told() -> None:
    found = place(INSIDE * 0.25, WHOLE)
    assert found is not None
    assert found.factor == pytest.approx(0.25)


@pytest.mark.parametrize(
    "table",
    [INSIDE.mT, -INSIDE, INSIDE + 0.01, torch.zeros(4, 3), INSIDE.exp(), torch.full((4, 3), torch.nan)],
    ids=["on its side", "negative", "shifted", "zeros", "exponentials", "NaN"],
)
def test_other_numbers_are_no_window(table: Tensor) -> None:
    assert place(table, WHOLE) is None


def test_what_reaches_beyond_the_end_is_padding() -> None:
    found = place(torch.nn.functional.pad(WHOLE[6:, 4:], (0, 2, 0, 1)), WHOLE)
    assert found is not None
    assert found.box == Box(6, 4, 3, 3)


def test_one_cell_is_enough_where_the_factor_is_known() -> None:
    column = hidden(WHOLE[3:6, 2:3] * 2, (0, 0), (1, 0))
    assert place(column, WHOLE) is None
    found = place(column, WHOLE, 2.0)
    assert found is not None
    assert found.box == Box(3, 2, 3, 1)


def test_shares_tell_their_scale_and_what_each_row_is_held_against() -> None:
    reference = torch.tensor([0.5, -1.0, 2.0, 0.0], dtype=torch.float64)
    shares = (0.4 * INSIDE - reference[:, None]).exp()
    shares[0, 1], shares[2] = 0, 0
    found = fit(shares, INSIDE)
    assert found is not None
    assert found.scale == pytest.approx(0.4)
    torch.testing.assert_close(found.reference, torch.where(shares.any(-1), reference, torch.nan), equal_nan=True)


@pytest.mark.parametrize(
    "shares",
    [INSIDE.abs(), -INSIDE.exp(), torch.zeros(4, 3), torch.full((4, 3), torch.inf), torch.ones(4, 3)],
    ids=["no exponentials", "negative", "all zero", "infinite", "all alike"],
)
def test_other_tables_are_no_shares(shares: Tensor) -> None:
    assert fit(shares, INSIDE) is None


def test_of_a_single_column_only_a_known_scale_tells() -> None:
    column = INSIDE[:, :1]
    assert fit(column.exp(), column) is None
    found = fit((column - 1).exp(), column, 1.0)
    assert found is not None
    torch.testing.assert_close(found.reference, torch.ones(4, dtype=torch.float64))
