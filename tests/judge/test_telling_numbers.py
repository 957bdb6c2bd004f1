"""Sentences about wrong numbers: one that stands out, and where the numbers came from."""

import math

import pytest
import torch
from torch import Tensor, tensor

from manyheads.box.worker.messages import Call, Output, Reply
from manyheads.diagnosis.fingerprint import ReplyFingerprint
from manyheads.diagnosis.observed_reply import ObservedReply
from manyheads.judge.choose_failure_of_visible_checks import (
    describe_wrong_numbers,
    origin_of_numbers,
)

SCORES = tensor([[0.5, 2.0, -1.0], [1.0, 0.0, 3.0]])
SHARES = SCORES.softmax(-1)
MASK = tensor([[True, False, False], [True, True, False]])
MASKED = SCORES.masked_fill(~MASK, -math.inf)


@pytest.mark.parametrize(
    ("actual", "expected", "says"),
    [
        pytest.param(
            SCORES.log_softmax(-1),
            SHARES,
            "Shares between 0 and 1 are expected, and some of these numbers are below 0",
            id="logarithms",
        ),
        pytest.param(
            SCORES.sigmoid(),
            SHARES,
            "Shares are expected, and a row of these sums to 2.18 instead of 1",
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
            "Scores are expected, and these are already shares",
            id="a softmax too early",
        ),
        pytest.param(
            SCORES.softmax(-1),
            SCORES,
            "Each row sums to 1, as after a softmax, and the expected rows do not",
            id="a softmax at the end",
        ),
        pytest.param(
            SCORES.masked_fill(MASK, math.inf),
            MASKED,
            "What should be kept is +∞, and what should be hidden is kept",
            id="+∞ the wrong way round",
        ),
        pytest.param(
            SCORES.masked_fill(~MASK, math.inf),
            MASKED,
            "There is +∞ among these numbers: a score is hidden by −∞",
            id="+∞",
        ),
        pytest.param(SCORES, MASKED, "", id="no mask"),
        pytest.param(SCORES - 1e9 * ~MASK, MASKED, "", id="a low number in place of −∞"),
        pytest.param(tensor(6), tensor(12), "The expected number is 2 times as large", id="half"),
        pytest.param(tensor(48), tensor(12), "It is 4 times the expected number", id="four times"),
        pytest.param(tensor(-12), tensor(12), "Its sign is the wrong one", id="the other sign"),
        pytest.param(tensor(0), tensor(12), "", id="nothing"),
        pytest.param(tensor(18), tensor(12), "", id="half as much again"),
        pytest.param(tensor(12_000), tensor(12), "", id="a factor that nobody counts"),
        pytest.param(tensor(12.0), tensor(0.0), "", id="nothing is due"),
        pytest.param(tensor(3.0), tensor(-math.inf), "", id="a number in place of −∞"),
    ],
)
def test_wrong_numbers_are_described(actual: Tensor, expected: Tensor, says: str) -> None:
    message = describe_wrong_numbers(actual, expected)
    assert message.startswith(says)
    assert bool(message) == bool(says)


# two sequences, three positions, four channels: two heads of two
STREAM = torch.arange(24.0, dtype=torch.float64).sqrt().reshape(2, 3, 4)
HEADS = STREAM.view(2, 3, 2, 2).transpose(1, 2)


def origin(actual: Tensor | None, expected: Tensor | None, *arguments: object) -> str:
    """Return where the numbers of an answer to a call with these arguments came from."""
    call, reply = Call("split_heads", arguments), Reply((Output("tensor", actual),))
    return origin_of_numbers(
        ObservedReply(call, ReplyFingerprint(), (expected,), reply, ReplyFingerprint())
    )


FROM = "should be the number that the {} has at {}; yours is the one at {}"


@pytest.mark.parametrize(
    ("actual", "expected", "arguments", "says"),
    [
        pytest.param(
            STREAM.view(2, 2, 3, 2),
            HEADS,
            (STREAM, 2),
            "At [0, 0, 1, 0] " + FROM.format("first argument", "[0, 1, 0]", "[0, 0, 2]"),
            id="a wrong view",
        ),
        pytest.param(
            HEADS.reshape(2, 3, 4),
            STREAM,
            (HEADS,),
            "At [0, 0, 2] " + FROM.format("first argument", "[0, 1, 0, 0]", "[0, 0, 1, 0]"),
            id="a transpose that is missing",
        ),
        pytest.param(
            STREAM.flip(1),
            STREAM,
            (2, torch.ones(3), STREAM),
            "At [0, 0, 0] " + FROM.format("third argument", "[0, 0, 0]", "[0, 2, 0]"),
            id="another argument than the first",
        ),
        pytest.param(
            STREAM.float().view(2, 2, 3, 2),
            HEADS,
            (STREAM, 2),
            "At [0, 0, 1, 0] " + FROM.format("first argument", "[0, 1, 0]", "[0, 0, 2]"),
            id="an answer in float32",
        ),
        pytest.param(
            STREAM.view(2, 2, 3, 2),
            HEADS,
            (STREAM.float(), 2),
            "At [0, 0, 1, 0] " + FROM.format("first argument", "[0, 1, 0]", "[0, 0, 2]"),
            id="an argument in float32",
        ),
        pytest.param(HEADS, HEADS, (STREAM, 2), "", id="the right numbers"),
        pytest.param(HEADS.float(), HEADS, (STREAM, 2), "", id="the right numbers in float32"),
        pytest.param(HEADS.mT, HEADS, (STREAM, 2), "", id="another shape"),
        pytest.param(2 * STREAM.view(2, 2, 3, 2), HEADS, (STREAM, 2), "", id="other numbers"),
        pytest.param(STREAM.view(2, 2, 3, 2), 2 * HEADS, (STREAM, 2), "", id="no numbers of it"),
        pytest.param(HEADS * math.nan, HEADS, (STREAM, 2), "", id="NaN"),
        pytest.param(STREAM.view(2, 2, 3, 2) + 1j, HEADS, (STREAM, 2), "", id="complex numbers"),
        pytest.param(STREAM[0, 0, 1], STREAM[0, 0, 2], (STREAM,), "", id="a single number"),
        pytest.param(None, HEADS, (STREAM, 2), "", id="no tensor"),
        pytest.param(STREAM.view(2, 2, 3, 2), None, (STREAM, 2), "", id="no tensor is due"),
        pytest.param(torch.zeros(3), torch.ones(3), (torch.ones(0),), "", id="an empty argument"),
        pytest.param(torch.zeros(3), torch.ones(3), (torch.ones(1),), "", id="one number alone"),
        pytest.param(
            torch.zeros(3), torch.ones(3), (torch.arange(3),), "", id="an argument of integers"
        ),
    ],
)
def test_where_wrong_numbers_came_from(
    actual: Tensor | None, expected: Tensor | None, arguments: tuple[object, ...], says: str
) -> None:
    assert origin(actual, expected, *arguments) == says
