"""Recordings are compared as numbers: equal to rounding is in step, and an infinity is never equal to a number."""

import pytest
import torch
from torch import Tensor

from manyheads.authoring.compare_recordings import same_numbers

pytestmark = pytest.mark.recorded

X = torch.tensor([1.0, -250.0, 0.0, 3e-9])


@pytest.mark.parametrize(
    "made", [pytest.param(X * (1 + 1e-7), id="other last bits"), pytest.param(X + 1e-7, id="noise around zero")]
)
def test_rounding_is_in_step(made: Tensor) -> None:
    assert same_numbers(X, made)


@pytest.mark.parametrize("made", [
    pytest.param(X + torch.tensor([0.01, 0, 0, 0]), id="another number"),
    pytest.param(X.double(), id="another dtype"),
    pytest.param(X.view(2, 2), id="another shape"),
    pytest.param(X.long(), id="integers in place of floats"),
])  # fmt: skip
def test_everything_else_is_not(made: Tensor) -> None:
    assert not same_numbers(X, made)
    assert not same_numbers(made, X)


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
