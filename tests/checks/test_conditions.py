"""The conditions that a function weighs its arguments, on known weights."""

import pytest
import torch
from torch import Tensor

from manyheads.checks.preconditions import LIMIT_FACTORS, Judged, LeftOut, first_failed_condition

QUERIES, KEYS = 5, 4


def answers(weigh) -> Tensor:
    """Return the answers to six variants of one text.

    A value is raised at neither, the first or the second of two keys, before and after these keys
    change places.
    """
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(QUERIES, KEYS, generator=generator, dtype=torch.float64)
    values = torch.randn(KEYS, 3, generator=generator, dtype=torch.float64)
    texts = []
    for table in (scores, scores[:, [1, 0, *range(2, KEYS)]]):
        for raised in ([], [0], [1]):
            raised_values = values.clone()
            raised_values[raised] += 1.0
            texts.append(weigh(table) @ raised_values)
    return torch.stack(texts)


def softmax(scores: Tensor) -> Tensor:
    return scores.softmax(-1)


def even(scores: Tensor) -> Tensor:
    return torch.full_like(scores, 1 / KEYS)


EXPECTED, EVEN = answers(softmax), answers(even)


def unmet(*texts: Tensor, hidden_rows: tuple[int, ...] = ()) -> str:
    """Return the message about the answers to these texts, or "" if the condition is met."""
    left_out = LeftOut(rows=hidden_rows)
    return first_failed_condition(
        [Judged("weighing", text, EXPECTED, "unmet", left_out) for text in texts]
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
        pytest.param(even, "unmet", id="one share for all"),
        pytest.param(
            lambda scores: 0.5 ** torch.arange(KEYS).double().expand_as(scores),
            "unmet",
            id="shares by distance",
        ),
        pytest.param(
            lambda scores: even(scores) * (1 + scores.sin().mean(-1, keepdim=True)),
            "unmet",
            id="a gate on all shares",
        ),
    ],
)
def test_a_share_has_to_change_with_its_key(weigh, message):
    assert unmet(answers(weigh)) == message


def test_one_magnitude_is_enough():
    assert unmet(EVEN, EXPECTED) == ""
    assert unmet(EVEN, EVEN) == "unmet"


def test_answers_that_are_nan_everywhere_meet_the_condition():
    assert unmet(EXPECTED * torch.nan) == ""


def test_a_row_that_a_call_changes_itself_is_left_out():
    actual = EVEN.clone()
    actual[1, 0], actual[5, 0] = 7.0, 9.0  # the first query alone
    assert unmet(actual) == ""
    assert unmet(actual, hidden_rows=(0,)) == "unmet"


def shares_of_equal_keys(weigh) -> Tensor:
    """Return the sum of the shares of equal keys, for three texts and every factor of scores."""
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
            id="one key more",
        ),
        pytest.param(lambda scores: scores, "", id="no softmax"),
        pytest.param(torch.sigmoid, "unmet", id="sigmoid"),
        pytest.param(torch.tanh, "unmet", id="tanh"),
    ],
)
def test_equal_keys_share_one_unit(weigh, message):
    sums = shares_of_equal_keys(weigh), shares_of_equal_keys(softmax)
    assert first_failed_condition([Judged("limit", *sums, "unmet")]) == message
