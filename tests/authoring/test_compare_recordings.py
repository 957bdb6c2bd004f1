"""Recordings are compared as numbers: equal to rounding is in step, and an infinity is never equal to a number."""

from __future__ import annotations

import pytest
import safetensors.torch
import torch
from torch import Tensor

from manyheads.authoring.compare_recordings import in_step, same_numbers

pytestmark = pytest.mark.recorded

X = torch.tensor([1.0, -250.0, 0.0, 3e-9])


def file(*, x: Tensor = X, name: str = "x") -> bytes:
    """A recording of one tensor."""
    return bytes(safetensors.torch.save({name: x}))


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(file(), id="the same bytes"),
        pytest.param(file(x=X * (1 + 1e-7)), id="other last bits"),
        pytest.param(file(x=X + 1e-7), id="noise around zero"),
    ],
)
def test_rounding_is_in_step(made: bytes) -> None:
    assert in_step(file(), made)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(file(x=X + torch.tensor([0.01, 0, 0, 0])), id="another number"),
        pytest.param(file(x=X.double()), id="another dtype"),
        pytest.param(file(x=X.view(2, 2)), id="another shape"),
        pytest.param(file(x=X.long()), id="integers in place of floats"),
        pytest.param(file(name="y"), id="another name"),
        pytest.param(b"", id="an empty file"),
        pytest.param(file()[:-1], id="a file that was cut off"),
    ],
)
def test_everything_else_is_not(made: bytes) -> None:
    assert not in_step(file(), made)
    assert not in_step(made, file())


def test_integers_and_bools_are_compared_exactly() -> None:
    assert same_numbers(torch.tensor([True, False]), torch.tensor([True, False]))
    assert not same_numbers(torch.tensor([10_000_000]), torch.tensor([10_000_001]))


@pytest.mark.parametrize("odd", [torch.inf, -torch.inf, torch.nan])
def test_what_is_not_finite_is_equal_to_itself_alone(odd: float) -> None:
    strange = torch.tensor([1.0, odd])
    assert same_numbers(strange, strange.clone())
    for other in (0.0, 1e30, -1e30, torch.inf, -torch.inf, torch.nan):
        if str(other) != str(odd):
            assert not same_numbers(strange, torch.tensor([1.0, other]))
    assert in_step(file(x=strange), file(x=strange))
