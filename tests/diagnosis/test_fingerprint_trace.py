"""Recording of tensors agree to rounding, and those of infinities and of huge numbers with nothing finite."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from manyheads.diagnosis.fingerprint import TensorFingerprint, tensor_fingerprint

pytestmark = pytest.mark.recorded

X = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
HUGE = {"inf": torch.inf, "1e308": 1e308, "1e35": 1e35}


def with_one(value: float) -> Tensor:
    return X.clone().index_fill_(0, torch.tensor([1]), value)


def test_rounding_agrees_and_another_number_does_not() -> None:
    assert tensor_fingerprint(X).agrees(tensor_fingerprint(X * (1 + 1e-12)))
    assert not tensor_fingerprint(X).agrees(tensor_fingerprint(X + 0.01))
    assert not tensor_fingerprint(X).agrees(tensor_fingerprint(X.view(4, 3)))


@pytest.mark.parametrize("huge", HUGE.values(), ids=HUGE.keys())
def test_a_huge_number_is_as_good_as_infinity_and_agrees_with_nothing_finite(huge: float) -> None:
    found = tensor_fingerprint(with_one(huge))
    assert found.agrees(found)
    assert found.agrees(tensor_fingerprint(with_one(torch.inf)))
    assert not found.agrees(tensor_fingerprint(X))
    assert not tensor_fingerprint(X).agrees(found)
    assert not found.agrees(tensor_fingerprint(with_one(-torch.inf)))
    assert not found.agrees(tensor_fingerprint(with_one(torch.nan)))


@pytest.mark.parametrize("norm", [float("inf"), float("nan")])
def test_a_recorded_norm_that_is_not_finite_agrees_with_itself_alone(norm: float) -> None:
    """No recording that is made has one; a damaged file may."""
    odd = TensorFingerprint(kind="tensor", shape=(3, 4), projections=(float("-inf"), 0.0, 1.0, 2.0), norm=norm)
    assert odd.agrees(odd)
    assert odd.agrees(replace(odd))
    assert not odd.agrees(tensor_fingerprint(X))
    assert not tensor_fingerprint(X).agrees(odd)
