"""Whether two answers, or recordings of two tensors, are the same to rounding; which are held
against the reference.
"""

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
    tensor = torch.tensor(numbers, dtype=torch.float64)
    return Reply(
        (Output("tensor", tensor),), {"args.0": torch.tensor(gradient, dtype=torch.float64)}
    )


def test_the_gradient_of_an_answer_that_is_no_number_says_nothing() -> None:
    """masked_fill and an addition of −inf give NaN in the same places, and not in the same
    gradients.
    """
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
    ("build", "counts"),
    [
        pytest.param(Build("Attention", state={"proj.weight": torch.ones(2, 2)}), True, id="given"),
        pytest.param(Build("Attention"), False, id="the module's own"),
    ],
)
def test_what_depends_on_weights_that_nobody_gave_is_no_evidence(
    build: Build, counts: bool
) -> None:
    """They are drawn in the order in which the module makes its layers, and that order is the
    student's.
    """
    assert is_comparable(Call(build, (torch.ones(2),))) is counts
    assert is_comparable(Call("merge", (build, torch.ones(2)))) is counts


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
    fingerprint = tensor_fingerprint(with_one(huge))
    assert fingerprint.agrees(fingerprint)
    assert fingerprint.agrees(tensor_fingerprint(with_one(torch.inf)))
    assert not fingerprint.agrees(tensor_fingerprint(X))
    assert not tensor_fingerprint(X).agrees(fingerprint)
    assert not fingerprint.agrees(tensor_fingerprint(with_one(-torch.inf)))
    assert not fingerprint.agrees(tensor_fingerprint(with_one(torch.nan)))
