"""Replies and fingerprints of tensors agree up to rounding, if their call can be compared."""

import math

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Build, Call, Output, Reply
from manyheads.diagnosis.fingerprint import (
    is_comparable,
    replies_agree,
    tensor_fingerprint,
)

pytestmark = pytest.mark.recorded


def reply_with_gradient(*numbers: float, gradient: float = 1.0) -> Reply:
    """Return a reply with these numbers as output and this gradient of the first argument."""
    tensor = torch.tensor(numbers, dtype=torch.float64)
    return Reply(
        (Output("tensor", tensor),), {"args.0": torch.tensor(gradient, dtype=torch.float64)}
    )


def test_gradients_are_not_compared_if_the_output_has_a_nan() -> None:
    """masked_fill and adding −inf give NaN in the same positions, but different gradients."""
    assert replies_agree(
        reply_with_gradient(1.0, math.nan), reply_with_gradient(1.0, math.nan, gradient=2.0)
    )
    assert not replies_agree(
        reply_with_gradient(1.0, math.nan), reply_with_gradient(2.0, math.nan, gradient=2.0)
    )
    assert not replies_agree(
        reply_with_gradient(1.0, 1.0), reply_with_gradient(1.0, 1.0, gradient=2.0)
    )


@pytest.mark.parametrize(
    ("build", "can_be_compared"),
    [
        pytest.param(
            Build("Attention", state={"proj.weight": torch.ones(2, 2)}),
            True,
            id="weights given by the call",
        ),
        pytest.param(Build("Attention"), False, id="weights drawn by the module"),
    ],
)
def test_a_call_is_compared_only_if_it_gives_the_modules_weights(
    build: Build, can_be_compared: bool
) -> None:
    """A module draws its own weights in the order of its layers, and the student may choose it."""
    assert is_comparable(Call(build, (torch.ones(2),))) is can_be_compared
    assert is_comparable(Call("merge", (build, torch.ones(2)))) is can_be_compared


X = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
HUGE = {"inf": torch.inf, "1e308": 1e308, "1e35": 1e35}


def with_replaced_row(value: float) -> Tensor:
    """Return X with this value in all of row 1."""
    return X.clone().index_fill_(0, torch.tensor([1]), value)


def test_fingerprints_agree_up_to_rounding() -> None:
    assert tensor_fingerprint(X).agrees(tensor_fingerprint(X * (1 + 1e-12)))
    assert not tensor_fingerprint(X).agrees(tensor_fingerprint(X + 0.01))
    assert not tensor_fingerprint(X).agrees(tensor_fingerprint(X.view(4, 3)))


@pytest.mark.parametrize("huge", HUGE.values(), ids=HUGE.keys())
def test_a_huge_number_counts_as_infinity(huge: float) -> None:
    fingerprint = tensor_fingerprint(with_replaced_row(huge))
    assert fingerprint.agrees(fingerprint)
    assert fingerprint.agrees(tensor_fingerprint(with_replaced_row(torch.inf)))
    assert not fingerprint.agrees(tensor_fingerprint(X))
    assert not tensor_fingerprint(X).agrees(fingerprint)
    assert not fingerprint.agrees(tensor_fingerprint(with_replaced_row(-torch.inf)))
    assert not fingerprint.agrees(tensor_fingerprint(with_replaced_row(torch.nan)))
