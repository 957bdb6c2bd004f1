"""A misconception that says what its answers look like is not named where they look otherwise."""

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Call, Output, Reply
from manyheads.diagnosis.fingerprint import fingerprint_of
from manyheads.diagnosis.observed_reply import Direction, observe_reply, without_other_directions

TABLE = torch.arange(12.0, dtype=torch.float64).view(4, 3) + 1
LSE = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)


def reply_with(tensors: tuple[Tensor, ...]) -> Reply:
    outputs = [Output("tensor", t, "float64", "cpu", tuple(t.shape)) for t in tensors]
    return Reply(outputs=tuple(outputs))


def is_named(direction: Direction, *pairs: tuple[Tensor, Tensor]) -> bool:
    """Whether a broken oracle may name it where the first of each pair came, and the second is
    due.
    """
    actual, expected = zip(*pairs, strict=True)
    original = fingerprint_of(reply_with(expected))
    observations = {7: observe_reply(Call("f"), original, expected, reply_with(actual))}
    return without_other_directions({7: "mistake"}, observations, {"mistake": direction}) == {
        7: "mistake"
    }


@pytest.mark.parametrize(
    ("mine", "is_moved"),
    [
        pytest.param(TABLE.flip(0), True, id="rows turned round"),
        pytest.param(TABLE.flip(1), False, id="columns turned round"),
        pytest.param(TABLE[[0, 0, 2, 3]], False, id="a row that stands twice"),
        pytest.param(2 * TABLE, False, id="other numbers"),
        pytest.param(TABLE.mT, False, id="another shape"),
    ],
)
def test_moved_rows_are_the_right_rows_each_once(mine: Tensor, is_moved: bool) -> None:
    assert is_named("moved rows", (mine, TABLE)) is is_moved


@pytest.mark.parametrize(
    ("pairs", "is_missing"),
    [
        pytest.param([(TABLE[:3], TABLE)], True, id="a row less"),
        pytest.param(
            [(TABLE * torch.tensor([[1.0], [1], [1], [0]]), TABLE)], True, id="a row of zeros"
        ),
        pytest.param(
            [(TABLE + 1, TABLE), (LSE - torch.tensor([0.0, 0, 0, 1]), LSE)],
            True,
            id="a sum that is smaller",
        ),
        pytest.param(
            [(TABLE + 1, TABLE), (LSE + torch.tensor([0.0, 0, 0, 1]), LSE)],
            False,
            id="a sum that is larger",
        ),
        pytest.param([(TABLE + 1, TABLE)], False, id="other numbers"),
    ],
)
def test_what_is_missing_is_not_there_or_makes_sums_smaller(
    pairs: list[tuple[Tensor, Tensor]], is_missing: bool
) -> None:
    assert is_named("missing", *pairs) is is_missing


def test_a_misconception_without_a_direction_is_named_as_before() -> None:
    assert without_other_directions({7: "mistake"}, {}, {}) == {7: "mistake"}
