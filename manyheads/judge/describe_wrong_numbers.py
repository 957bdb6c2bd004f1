"""Describe wrong numbers: they are not shares, the mask is inverted, or one is twice as large.

The sentence stands beside "550 of 550 values differ" if no named misconception explains the
numbers, and beside any single wrong number. Only answers to recorded, public calls are compared. A
student reads no digit of an expected number.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..checks.asserts import label
from ..diagnosis.observed_reply import ObservedReply, first_of

ROUNDING = 1e-6  # relative to the larger number
MOST_TIMES = 64  # a larger factor does not show which numbers were counted twice or left out
SUM_ROUNDING = 1e-3  # a row of shares in float32 sums to 1 as nearly as this
SAME = 1e-6  # two numbers that are this close count as the same
VERY_LOW = -1e4  # a score this low counts as −∞


def what_stands_out(actual: Tensor, expected: Tensor) -> str:
    """Return a sentence about wrong numbers beside the expected ones; "" if nothing stands out.

    Args:
        actual: The numbers that the attempt returned.
        expected: The numbers that the reference returns.
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


def origin_of_numbers(observation: ObservedReply) -> str:
    """Return where the first wrong number of an answer came from; "" if that cannot be seen.

    It can be seen if the reference only moves the numbers of an argument, and the attempt, too.
    """
    actual = next((output.tensor for output in observation.reply.outputs), None)
    expected = first_of(observation.expected_outputs)
    if actual is None or expected is None or actual.shape != expected.shape or not expected.dim():
        return ""
    if actual.is_complex() or expected.is_complex():
        return ""
    is_wrong = (actual.double() - expected.double()).abs() > SAME
    if not is_wrong.any():
        return ""
    position = int(is_wrong.flatten().nonzero()[0])
    for name, argument in observation.call.arguments.items():
        if not isinstance(argument, Tensor) or not argument.is_floating_point():
            continue
        expected_origins = _positions_in(argument, expected)
        actual_origins = _positions_in(argument, actual)
        if expected_origins is not None and actual_origins is not None:
            return (
                f"At {_index_in(expected, position)} should be the number that {label(name)} has "
                f"at {_index_in(argument, int(expected_origins[position]))}; yours is the one at "
                f"{_index_in(argument, int(actual_origins[position]))}"
            )
    return ""


def _index_in(tensor: Tensor, position: int) -> list[int]:
    """Return the index of the number that has this position in the flat tensor."""
    return [int(index) for index in torch.unravel_index(torch.tensor(position), tensor.shape)]


def _positions_in(argument: Tensor, answer: Tensor) -> Tensor | None:
    """Return the index in the flat argument of each number of the flat answer.

    Returns None if the argument has not all of these numbers.
    """
    numbers, order = argument.double().flatten().sort()
    if len(numbers) < 2:
        return None
    answers = answer.double().flatten()
    after = torch.searchsorted(numbers, answers).clamp(1, len(numbers) - 1)
    is_nearer_before = answers - numbers[after - 1] < numbers[after] - answers
    nearest = torch.where(is_nearer_before, after - 1, after)
    if not bool(((numbers[nearest] - answers).abs() <= SAME).all()):
        return None
    return order[nearest]


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
    """Return why the numbers are not shares, if shares are expected; "" otherwise.

    Shares are in [0, 1], and each row has the sum 1.
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
    """Return that rows of shares stand in place of scores with hidden ones; "" if not."""
    if not bool((expected == -math.inf).any()) or not _are_shares(returned):
        return ""
    return "Scores are due, and these are shares already: each row of them sums to 1"


def _are_shares(numbers: Tensor) -> bool:
    if numbers.shape[-1] < 2 or bool((numbers < 0).any()):
        return False
    sums = numbers.sum(-1)
    return bool(((sums - 1).abs() <= SUM_ROUNDING).all())


def _hides_the_others(actual: Tensor, expected: Tensor) -> str:
    """Return that very low numbers stand in place of scores, and scores in place of −∞."""
    hidden = expected == -math.inf
    if not hidden.any() or hidden.all():
        return ""
    low = actual < VERY_LOW
    is_exchanged = torch.equal(low, ~hidden) and bool((actual[hidden].abs() < -VERY_LOW).all())
    return (
        "What should be hidden is kept, and what should be kept is hidden" if is_exchanged else ""
    )
