"""Say what stands out in wrong numbers: that they are no shares, that the mask is the wrong way
round, that one is twice as large.

It is said beside "550 of 550 values differ", where no misconception that has a name explains them,
and of a single number always. What is compared are answers to recorded, public calls. Of an
expected number a student reads no digit.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

ROUNDING = 1e-6  # of the larger number
MOST_TIMES = 64  # a larger factor than this tells nobody what was counted
SUM_ROUNDING = 1e-3  # a row of shares in float32 sums to 1 as nearly as this
VERY_LOW = -1e4  # a score this low counts as −∞


def what_stands_out(actual: Tensor, expected: Tensor) -> str:
    """Return a sentence about the numbers of an attempt beside those that are due; "" if nothing
    stands out.

    Args:
        actual: What the attempt returned.
        expected: What the reference returns.
    """
    if actual.shape != expected.shape or not expected.numel() or actual.is_complex():
        return ""
    actual, expected = actual.double(), expected.double()
    if not expected.dim():
        return _times(float(actual), float(expected))
    if not actual.isnan().any():
        return (
            _no_shares(actual, expected)
            or _hides_the_others(actual, expected)
            or _shares_for_scores(actual, expected)
        )
    return ""


def _times(actual: float, expected: float) -> str:
    if not expected or not math.isfinite(actual):
        return ""
    if abs(actual + expected) <= ROUNDING * abs(expected):
        return "Its sign is the wrong one"
    larger, smaller = max(abs(actual), abs(expected)), min(abs(actual), abs(expected))
    times = round(larger / smaller) if smaller else 0
    if (
        actual * expected < 0
        or not 1 < times <= MOST_TIMES
        or abs(larger - times * smaller) > ROUNDING * larger
    ):
        return ""
    if abs(actual) > abs(expected):
        return f"It is {times} times the number that is due"
    return f"The number that is due is {times} times as large"


def _no_shares(actual: Tensor, expected: Tensor) -> str:
    """Return what keeps numbers from being shares where shares are due: each in [0, 1], and 1 the
    sum of a row.
    """
    if not _are_shares(expected):
        return ""
    if bool((actual < -SUM_ROUNDING).any()):
        return "Shares are due, and some of these numbers are below 0"
    sums = actual.sum(-1)
    apart = (sums - 1).abs()
    if bool((apart > SUM_ROUNDING).any()):
        return (
            "Shares are due, and a row of these sums to "
            f"{float(sums.flatten()[apart.argmax()]):.3g}, not to 1"
        )
    return ""


def _shares_for_scores(returned: Tensor, expected: Tensor) -> str:
    """Return that rows of shares stand where scores with hidden ones are due; "" if not."""
    if not bool((expected == -math.inf).any()) or not _are_shares(returned):
        return ""
    return "Scores are due, and these are shares already: each row of them sums to 1"


def _are_shares(numbers: Tensor) -> bool:
    if numbers.shape[-1] < 2 or bool((numbers < 0).any()):
        return False
    sums = numbers.sum(-1)
    return bool(((sums - 1).abs() <= SUM_ROUNDING).all())


def _hides_the_others(actual: Tensor, expected: Tensor) -> str:
    """Return that very low numbers stand where scores are due, and scores where −∞ is."""
    hidden = expected == -math.inf
    if not hidden.any() or hidden.all():
        return ""
    low = actual < VERY_LOW
    is_exchanged = torch.equal(low, ~hidden) and bool((actual[hidden].abs() < -VERY_LOW).all())
    return (
        "What should be hidden is kept, and what should be kept is hidden" if is_exchanged else ""
    )
