"""The rules by which a function has to weigh what it is given, on tables of weights that are
known.
"""

import pytest
import torch
from torch import Tensor

from manyheads.checks.preconditions import LIMIT_FACTORS, Judged, LeftOut, first_failed_condition

QUERIES, KEYS = 5, 4
FIRST, SECOND = 0, 1


def answers(weigh) -> Tensor:
    """The six variants of one text: a value raised at either of two keys, before and after these
    change places.
    """
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(QUERIES, KEYS, generator=generator, dtype=torch.float64)
    values = torch.randn(KEYS, 3, generator=generator, dtype=torch.float64)
    swapped = scores[:, [SECOND, FIRST, *range(2, KEYS)]]
    texts = []
    for table in (scores, swapped):
        for raised in (None, FIRST, SECOND):
            raised_values = values.clone()
            if raised is not None:
                raised_values[raised] += 1.0
            texts.append(weigh(table) @ raised_values)
    return torch.stack(texts)


def even_weights(scores: Tensor) -> Tensor:
    return torch.full_like(scores, 1 / KEYS)


WEIGHED = {
    "softmax": (lambda scores: scores.softmax(-1), True),
    "softmax of scores that are far too small": (lambda scores: (scores / 500).softmax(-1), True),
    "softmax over the queries": (lambda scores: scores.softmax(0), True),
    "no softmax": (lambda scores: scores, True),
    "one share for all": (even_weights, False),
    "shares by distance": (
        lambda scores: 0.5 ** torch.arange(KEYS).double().expand_as(scores),
        False,
    ),
    "a gate on all shares": (
        lambda scores: even_weights(scores) * (1 + scores.sin().mean(-1, keepdim=True)),
        False,
    ),
}


@pytest.mark.parametrize("weights", WEIGHED)
def test_a_share_has_to_change_with_its_key(weights):
    weigh, is_met = WEIGHED[weights]
    message = first_failed_condition(
        [Judged("weighing", answers(weigh), answers(WEIGHED["softmax"][0]), "nothing is weighed")]
    )
    assert message == ("" if is_met else "nothing is weighed")


def test_one_magnitude_is_enough():
    expected = answers(WEIGHED["softmax"][0])
    unmet, met = (
        Judged("weighing", actual, expected, "unmet")
        for actual in (answers(even_weights), expected)
    )
    assert first_failed_condition([unmet, met]) == ""
    assert first_failed_condition([unmet, unmet]) == "unmet"


def test_numbers_that_are_nan_everywhere_are_given_the_benefit_of_the_doubt():
    expected = answers(WEIGHED["softmax"][0])
    assert (
        first_failed_condition([Judged("weighing", expected * torch.nan, expected, "unmet")]) == ""
    )


def test_what_a_call_changes_itself_is_left_out():
    expected = answers(WEIGHED["softmax"][0])
    actual = answers(even_weights)
    actual[1, 0], actual[5, 0] = 7.0, 9.0  # the first query alone
    assert first_failed_condition([Judged("weighing", actual, expected, "unmet")]) == ""
    assert (
        first_failed_condition([Judged("weighing", actual, expected, "unmet", LeftOut(rows=(0,)))])
        == "unmet"
    )


SCORES = torch.tensor([0.3, 0.6, 0.9], dtype=torch.float64)


def of_equal_keys(weigh) -> Tensor:
    """What equal keys give a value of 1, for three texts and every factor of their scores: (texts ·
    4, 1, 1).
    """
    scores = SCORES.repeat_interleave(len(LIMIT_FACTORS)) * torch.tensor(
        LIMIT_FACTORS
    ).double().square().repeat(3)
    return weigh(scores[:, None].expand(-1, KEYS)).sum(-1).view(-1, 1, 1)


@pytest.mark.parametrize(
    ("weigh", "is_met"),
    [
        pytest.param(lambda scores: scores.softmax(-1), True, id="softmax"),
        pytest.param(
            lambda scores: scores.exp() / (1 + scores.exp().sum(-1, keepdim=True)),
            True,
            id="one key more",
        ),
        pytest.param(lambda scores: scores, True, id="no softmax"),
        pytest.param(torch.sigmoid, False, id="sigmoid"),
        pytest.param(torch.tanh, False, id="tanh"),
    ],
)
def test_equal_keys_share_one_unit(weigh, is_met):
    judged = Judged(
        "limit",
        of_equal_keys(weigh),
        of_equal_keys(lambda scores: scores.softmax(-1)),
        "more than one",
    )
    assert first_failed_condition([judged]) == ("" if is_met else "more than one")
