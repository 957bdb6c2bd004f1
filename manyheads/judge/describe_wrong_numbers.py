"""Describe wrong numbers: they are not shares, the mask is inverted, or one is twice as large.

The sentence is added to "550 of 550 values differ" if no named misconception explains the numbers,
and to any single wrong number. Only answers to recorded, public calls are compared. A student reads
no digit of an expected number.
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
    """Return a sentence about wrong numbers, compared with the expected ones, or "".

    A single number may be a multiple of the expected one, or its negative. A tensor may hold no
    shares where shares are expected, hide the wrong scores, or hold shares instead of scores.

    Args:
        actual: The numbers that the attempt returned.
        expected: The numbers that the reference returns.
    """
    if actual.shape != expected.shape or not expected.numel() or actual.is_complex():
        return ""
    actual, expected = actual.double(), expected.double()
    if not expected.dim():
        return _describe_ratio(float(actual), float(expected))
    if actual.isnan().any():
        return ""
    return (
        _describe_broken_shares(actual, expected)
        or _describe_inverted_mask(actual, expected)
        or _describe_plus_infinity(actual, expected)
        or _describe_shares_for_scores(actual, expected)
    )


def origin_of_numbers(observation: ObservedReply) -> str:
    """Return where the first wrong number of an answer came from; "" if that cannot be seen.

    It can be seen if both the expected and the actual answer consist of numbers of one argument,
    moved to other positions.
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
            expected_origin = _index_in(argument, int(expected_origins[position]))
            actual_origin = _index_in(argument, int(actual_origins[position]))
            return (
                f"At {_index_in(expected, position)} should be the number that {label(name)} has "
                f"at {expected_origin}; yours is the one at {actual_origin}"
            )
    return ""


def _index_in(tensor: Tensor, position: int) -> list[int]:
    """Return the index of the number that has this position in the flat tensor."""
    return [int(index) for index in torch.unravel_index(torch.tensor(position), tensor.shape)]


def _positions_in(argument: Tensor, answer: Tensor) -> Tensor | None:
    """Return the index in the flat argument of each number of the flat answer.

    Returns None if the argument lacks one of these numbers, or has less than two numbers.
    """
    sorted_numbers, positions = argument.double().flatten().sort()
    if len(sorted_numbers) < 2:
        return None
    answers = answer.double().flatten()
    # each answer lies between the numbers at `upper - 1` and `upper`, and the nearer one counts
    upper = torch.searchsorted(sorted_numbers, answers).clamp(1, len(sorted_numbers) - 1)
    distance_below = answers - sorted_numbers[upper - 1]
    distance_above = sorted_numbers[upper] - answers
    nearest = torch.where(distance_below < distance_above, upper - 1, upper)
    if not bool(((sorted_numbers[nearest] - answers).abs() <= SAME).all()):
        return None
    return positions[nearest]


def _describe_ratio(actual: float, expected: float) -> str:
    """Return that the number has the wrong sign or is a whole multiple, or a fraction; or ""."""
    if not expected or not math.isfinite(actual) or not math.isfinite(expected):
        return ""
    if abs(actual + expected) <= ROUNDING * abs(expected):
        return "Its sign is the wrong one"
    larger, smaller = max(abs(actual), abs(expected)), min(abs(actual), abs(expected))
    times = round(larger / smaller) if smaller else 0
    is_multiple = abs(larger - times * smaller) <= ROUNDING * larger
    if actual * expected < 0 or not 1 < times <= MOST_TIMES or not is_multiple:
        return ""
    if abs(actual) > abs(expected):
        return f"It is {times} times the number that is due"
    return f"The number that is due is {times} times as large"


def _describe_broken_shares(actual: Tensor, expected: Tensor) -> str:
    """Return why the numbers are not shares, if shares are expected; "" otherwise.

    Shares are in [0, 1], and each row has the sum 1.
    """
    if not _are_shares(expected):
        return ""
    if bool((actual < -SUM_ROUNDING).any()):
        return "Shares are due, and some of these numbers are below 0"
    sums = actual.sum(-1)
    errors = (sums - 1).abs()
    if bool((errors > SUM_ROUNDING).any()):
        worst_sum = float(sums.flatten()[errors.argmax()])
        return f"Shares are due, and a row of these sums to {worst_sum:.3g}, not to 1"
    return ""


def _describe_shares_for_scores(actual: Tensor, expected: Tensor) -> str:
    """Return that shares are returned, if scores or answers are expected; "" otherwise."""
    if _are_shares(expected) or not _are_shares(actual):
        return ""
    if bool((expected == -math.inf).any()):
        return "Scores are due, and these are shares already: each row of them sums to 1"
    return "Each row of these sums to 1, as after a softmax, and here no shares are due"


def _describe_plus_infinity(actual: Tensor, expected: Tensor) -> str:
    """Return that +∞ stands among the numbers, if −∞ is expected and no +∞; "" otherwise."""
    is_hidden, is_infinite = expected == -math.inf, actual == math.inf
    if not is_hidden.any() or not is_infinite.any() or bool((expected == math.inf).any()):
        return ""
    if torch.equal(is_infinite, ~is_hidden):
        return "What should be kept is +∞, and what should be hidden is kept"
    return "There is +∞ among these numbers: a score is hidden by −∞"


def _are_shares(numbers: Tensor) -> bool:
    """Return whether no number is negative and each row of at least two has the sum 1."""
    if numbers.shape[-1] < 2 or bool((numbers < 0).any()):
        return False
    sums = numbers.sum(-1)
    return bool(((sums - 1).abs() <= SUM_ROUNDING).all())


def _describe_inverted_mask(actual: Tensor, expected: Tensor) -> str:
    """Return that exactly the scores that should be kept are hidden; "" if that is not so."""
    is_hidden = expected == -math.inf
    if not is_hidden.any() or is_hidden.all():
        return ""
    hides_the_others = torch.equal(actual < VERY_LOW, ~is_hidden)
    if hides_the_others and bool((actual[is_hidden].abs() < -VERY_LOW).all()):
        return "What should be hidden is kept, and what should be kept is hidden"
    return ""
