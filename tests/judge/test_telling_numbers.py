"""What stands out in wrong numbers."""

import math

import pytest
import torch
from torch import Tensor, tensor

from manyheads.judge.describe_wrong_numbers import what_stands_out

SCORES = tensor([[0.5, 2.0, -1.0], [1.0, 0.0, 3.0]])
SHARES = SCORES.softmax(-1)
MASK = tensor([[True, False, False], [True, True, False]])
MASKED = SCORES.masked_fill(~MASK, -math.inf)


@pytest.mark.parametrize(
    ("mine", "right", "says"),
    [
        pytest.param(
            SCORES.log_softmax(-1),
            SHARES,
            "Shares are due, and some of these numbers are below 0",
            id="logarithms",
        ),
        pytest.param(
            SCORES.sigmoid(),
            SHARES,
            "Shares are due, and a row of these sums to 2.18, not to 1",
            id="a sigmoid",
        ),
        pytest.param(SCORES.flip(-1).softmax(-1), SHARES, "", id="other shares"),
        pytest.param(SHARES.T, SHARES, "", id="another shape"),
        pytest.param(SCORES, SCORES + 1, "", id="no shares are due"),
        pytest.param(SHARES * math.nan, SHARES, "", id="NaN"),
        pytest.param(torch.ones(2, 1) * 3, torch.ones(2, 1), "", id="one share alone"),
        pytest.param(
            SCORES - 1e9 * MASK,
            MASKED,
            "What should be hidden is kept, and what should be kept is hidden",
            id="the wrong way round",
        ),
        pytest.param(
            SCORES.masked_fill(MASK, -math.inf),
            MASKED,
            "What should be hidden is kept, and what should",
            id="the same with −∞",
        ),
        pytest.param(
            MASKED.softmax(-1),
            MASKED,
            "Scores are due, and these are shares already",
            id="a softmax too early",
        ),
        pytest.param(
            SCORES.softmax(-1), SCORES, "", id="shares for scores of which none is hidden"
        ),
        pytest.param(SCORES, MASKED, "", id="no mask"),
        pytest.param(SCORES - 1e9 * ~MASK, MASKED, "", id="a low number in place of −∞"),
        pytest.param(
            tensor(6), tensor(12), "The number that is due is 2 times as large", id="half"
        ),
        pytest.param(
            tensor(48), tensor(12), "It is 4 times the number that is due", id="four times"
        ),
        pytest.param(tensor(-12), tensor(12), "Its sign is the wrong one", id="the other sign"),
        pytest.param(tensor(0), tensor(12), "", id="nothing"),
        pytest.param(tensor(18), tensor(12), "", id="half as much again"),
        pytest.param(tensor(12_000), tensor(12), "", id="a factor that nobody counts"),
        pytest.param(tensor(12.0), tensor(0.0), "", id="nothing is due"),
    ],
)
def test_what_stands_out(mine: Tensor, right: Tensor, says: str) -> None:
    message = what_stands_out(mine, right)
    assert message.startswith(says)
    assert bool(message) == bool(says)
