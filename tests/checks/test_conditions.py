"""The preconditions of attention checks: does a function weigh its values at all?

"unmet" is the message of a failed precondition, and "" means that it is met.
"""

import pytest
import torch
from torch import Tensor

from manyheads.checks.preconditions import LIMIT_FACTORS, Judged, LeftOut, first_failed_condition

QUERIES, KEYS = 5, 4


def answers(weigh) -> Tensor:
    """Return the outputs for six variants of one input.

    One of the first two values is raised, or neither; the first two keys are in order, or swapped.

    Args:
        weigh: a function from scores (queries, keys) to attention weights.
    """
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(QUERIES, KEYS, generator=generator, dtype=torch.float64)
    values = torch.randn(KEYS, 3, generator=generator, dtype=torch.float64)
    answers_of_texts = []
    for table in (scores, scores[:, [1, 0, *range(2, KEYS)]]):
        for raised in ([], [0], [1]):
            raised_values = values.clone()
            raised_values[raised] += 1.0
            answers_of_texts.append(weigh(table) @ raised_values)
    return torch.stack(answers_of_texts)


def softmax(scores: Tensor) -> Tensor:
    return scores.softmax(-1)


def even(scores: Tensor) -> Tensor:
    return torch.full_like(scores, 1 / KEYS)


EXPECTED, EVEN = answers(softmax), answers(even)


def message_for(*answers_of_texts: Tensor, hidden_rows: tuple[int, ...] = ()) -> str:
    """Return "unmet" if these answers do not meet the precondition, otherwise "".

    Args:
        answers_of_texts: the answers for each magnitude of the scores.
        hidden_rows: queries that the call itself changes, which are not judged.
    """
    left_out = LeftOut(rows=hidden_rows)
    return first_failed_condition(
        [Judged("weighing", text, EXPECTED, "unmet", left_out) for text in answers_of_texts]
    )


@pytest.mark.parametrize(
    ("weigh", "message"),
    [
        pytest.param(softmax, "", id="softmax"),
        pytest.param(
            lambda scores: (scores / 500).softmax(-1), "", id="softmax of scores far too small"
        ),
        pytest.param(lambda scores: scores.softmax(0), "", id="softmax over the queries"),
        pytest.param(lambda scores: scores, "", id="no softmax"),
        pytest.param(even, "unmet", id="equal weights"),
        pytest.param(
            lambda scores: 0.5 ** torch.arange(KEYS).double().expand_as(scores),
            "unmet",
            id="weights by distance",
        ),
        pytest.param(
            lambda scores: even(scores) * (1 + scores.sin().mean(-1, keepdim=True)),
            "unmet",
            id="one factor for all weights",
        ),
    ],
)
def test_weights_must_change_with_the_keys(weigh, message):
    assert message_for(answers(weigh)) == message


def test_one_magnitude_of_scores_that_meets_the_condition_is_enough():
    assert message_for(EVEN, EXPECTED) == ""
    assert message_for(EVEN, EVEN) == "unmet"


def test_answers_that_are_nan_everywhere_meet_the_condition():
    assert message_for(EXPECTED * torch.nan) == ""


def test_hidden_rows_are_not_judged():
    actual = EVEN.clone()
    actual[1, 0], actual[5, 0] = 7.0, 9.0  # two variants differ, only in the first query
    assert message_for(actual) == ""
    assert message_for(actual, hidden_rows=(0,)) == "unmet"


def sum_of_equal_weights(weigh) -> Tensor:
    """Return the sum of the weights of equal keys, for three scores times every factor."""
    factors = torch.tensor(LIMIT_FACTORS).double().square().repeat(3)
    scores = torch.tensor([0.3, 0.6, 0.9]).double().repeat_interleave(len(LIMIT_FACTORS)) * factors
    return weigh(scores[:, None].expand(-1, KEYS)).sum(-1).view(-1, 1, 1)


@pytest.mark.parametrize(
    ("weigh", "message"),
    [
        pytest.param(softmax, "", id="softmax"),
        pytest.param(
            lambda scores: scores.exp() / (1 + scores.exp().sum(-1, keepdim=True)),
            "",
            id="softmax with one more key",
        ),
        pytest.param(lambda scores: scores, "", id="no softmax"),
        pytest.param(torch.sigmoid, "unmet", id="sigmoid"),
        pytest.param(torch.tanh, "unmet", id="tanh"),
    ],
)
def test_the_weights_of_equal_keys_must_add_up_to_one(weigh, message):
    sums = sum_of_equal_weights(weigh), sum_of_equal_weights(softmax)
    assert first_failed_condition([Judged("limit", *sums, "unmet")]) == message
