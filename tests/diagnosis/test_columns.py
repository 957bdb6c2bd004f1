"""Numbers in few bytes come back as they were, or to what comparing them needs."""

import math

import pytest
import torch
from torch import Tensor

from manyheads.checks.draw import Drawn
from manyheads.diagnosis.columns import TensorColumns, from_rows, from_sizes, narrow, read_tensors, to_rows, to_sizes

NOISE = torch.randn(6, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


DRAWN = [Drawn(7, 0, 42, 1.0), Drawn(7, 1, 60, 0.25)]


def back(columns: TensorColumns, place: int) -> Tensor:
    return read_tensors(columns.columns(), DRAWN, columns.specs)[place]


def size_of(columns: TensorColumns) -> int:
    return sum(each.nbytes for each in columns.columns().values())


@pytest.mark.parametrize("tensor", [
    pytest.param(NOISE, id="noise"),
    pytest.param(1e30 * NOISE, id="numbers without end"),
    pytest.param(torch.arange(5.0).double(), id="whole numbers"),
    pytest.param(torch.full((3, 3), -math.inf).triu(1).double(), id="a mask"),
    pytest.param(torch.tensor([math.nan, 0.0, math.inf]), id="what is not finite"),
    pytest.param(NOISE > 0, id="truths"),
    pytest.param(torch.arange(1000), id="positions"),
    pytest.param(torch.zeros(0, 3).double(), id="nothing"),
    pytest.param(torch.tensor(0.3).double(), id="a single number"),
    pytest.param(NOISE[:1].expand(512, 7), id="many copies of a row"),
    pytest.param(DRAWN[0].numbers().view(2, 3, 7).transpose(0, 2), id="what was drawn, turned"),
    pytest.param(torch.cat([DRAWN[1].numbers(), DRAWN[0].numbers()[::4]]), id="parts of what was drawn"),
    pytest.param(DRAWN[0].numbers().index_fill(0, torch.tensor([5, 30]), 9.5), id="what was drawn, with changes"),
])  # fmt: skip
def test_a_tensor_comes_back_with_its_floats_in_float32(tensor: Tensor) -> None:
    columns = TensorColumns(DRAWN)
    columns.add(torch.rand(3, generator=torch.Generator().manual_seed(1)))
    stored = back(columns, columns.add(tensor))
    due = tensor.float() if tensor.is_floating_point() else tensor
    assert stored.dtype == due.dtype
    torch.testing.assert_close(stored, due, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("factor", [1.0, 1e20, 1e-6])
def test_an_output_comes_back_to_a_millionth_of_its_largest_number(factor: float) -> None:
    output = factor * NOISE.clone()
    output[0, 0], output[1] = -math.inf, 0.0
    columns = TensorColumns(DRAWN)
    stored = back(columns, columns.add(output, rounded=True))
    assert float(stored[0, 0]) == -math.inf
    assert bool((stored[1] == 0).all())
    assert float((stored[2:] - output[2:]).abs().max()) <= 1e-6 * float(output[2:].abs().max())
    assert not torch.equal(stored[2:], output[2:].float())


@pytest.mark.parametrize(
    "output", [NOISE > 0, torch.arange(9), torch.arange(9.0) / 8, DRAWN[0].numbers()[::2]], ids=str
)
def test_an_output_that_is_simple_or_was_drawn_comes_back_as_it_was(output: Tensor) -> None:
    columns = TensorColumns(DRAWN)
    stored = back(columns, columns.add(output, rounded=True))
    torch.testing.assert_close(stored, output.to(stored.dtype), rtol=0, atol=0)


def test_the_same_tensor_is_stored_once() -> None:
    columns = TensorColumns()
    assert columns.add(NOISE) == columns.add(NOISE.clone())
    assert len(columns.specs) == 1


def test_what_was_drawn_and_copies_take_few_bytes() -> None:
    columns = TensorColumns(DRAWN)
    columns.add(DRAWN[1].numbers().view(4, 15).T)
    columns.add(NOISE[:1].expand(512, 7))
    assert size_of(columns) < 9000


def test_a_whole_number_of_more_than_24_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        TensorColumns().add(torch.tensor([2**24 + 1]))


@pytest.mark.parametrize("factor", [1.0, 1e20, 1e-3])
def test_rows_of_numbers_come_back(factor: float) -> None:
    rows = torch.cat([factor * NOISE, torch.zeros(1, 7)])
    back = from_rows(*to_rows(rows))
    assert bool(((back - rows).abs() <= 1.7e-5 * rows.abs().amax(1, keepdim=True)).all())


def test_rows_that_come_from_a_file_go_back_as_they_came() -> None:
    whole, sizes = to_rows(NOISE)
    again, same = to_rows(from_rows(whole, sizes))
    assert torch.equal(whole, again)
    assert torch.equal(sizes, same)


def test_next_to_nothing_stays_next_to_nothing() -> None:
    assert float(from_rows(*to_rows(1e-12 * NOISE)).abs().max()) < 1e-9


@pytest.mark.parametrize("numbers", [[1.0], [0.0, 1.0], [0.0, 1e-4, 3.0, 1e25]])
def test_sizes_come_back_to_a_tenth_and_zero_as_zero(numbers: list[float]) -> None:
    sizes = torch.tensor(numbers, dtype=torch.float64)
    back = from_sizes(to_sizes(sizes))
    assert back.tolist() == pytest.approx(numbers, rel=0.1)
    assert bool(((back == 0) == (sizes == 0)).all())


@pytest.mark.parametrize(("largest", "dtype"), [(127, torch.int8), (128, torch.int16), (2**15, torch.int32)])
def test_integers_take_the_narrowest_type_that_holds_them(largest: int, dtype: torch.dtype) -> None:
    assert narrow(torch.tensor([0, largest])).dtype == dtype


@pytest.mark.parametrize("name", ["numbers.raw", "numbers.high", "runs.length"])
def test_columns_that_end_early_are_refused(name: str) -> None:
    columns = TensorColumns(DRAWN)
    columns.add(NOISE)
    columns.add(2 * NOISE, rounded=True)
    stored = columns.columns()
    with pytest.raises((ValueError, LookupError, RuntimeError)):
        read_tensors(stored | {name: stored[name][:-1]}, DRAWN, columns.specs)
