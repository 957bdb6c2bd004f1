"""A misconception can state how its wrong answers look: rows moved, or something missing.

It is not named for answers that look different.
"""

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Call, Output, Reply
from manyheads.diagnosis.fingerprint import fingerprint_of
from manyheads.diagnosis.observed_reply import Direction, observe_reply, without_other_directions

TABLE = torch.arange(12.0, dtype=torch.float64).view(4, 3) + 1
ROW_OF_ZEROS = TABLE * torch.tensor([[1.0], [1], [1], [0]])
LSE = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
LAST_ONLY = torch.tensor([0.0, 0, 0, 1])


def reply_with(tensors: tuple[Tensor, ...]) -> Reply:
    """Return a reply with these tensors as outputs."""
    outputs = [Output("tensor", t, "float64", "cpu", tuple(t.shape)) for t in tensors]
    return Reply(outputs=tuple(outputs))


@pytest.mark.parametrize(
    ("direction", "actual", "is_named"),
    [
        pytest.param("moved rows", (TABLE.flip(0),), True, id="rows in reverse order"),
        pytest.param("moved rows", (TABLE.flip(1),), False, id="columns in reverse order"),
        pytest.param("moved rows", (TABLE[[0, 0, 2, 3]],), False, id="a row in place of another"),
        pytest.param("moved rows", (2 * TABLE,), False, id="other numbers are not moved"),
        pytest.param("moved rows", (TABLE.mT,), False, id="another shape"),
        pytest.param("missing", (TABLE[:3],), True, id="a row is missing"),
        pytest.param("missing", (ROW_OF_ZEROS,), True, id="a row of zeros"),
        pytest.param("missing", (TABLE + 1, LSE - LAST_ONLY), True, id="a sum that is smaller"),
        pytest.param("missing", (TABLE + 1, LSE + LAST_ONLY), False, id="a sum that is larger"),
        pytest.param("missing", (TABLE + 1,), False, id="other numbers are not missing"),
    ],
)
def test_a_misconception_is_named_only_if_the_answers_have_its_look(
    direction: Direction, actual: tuple[Tensor, ...], is_named: bool
) -> None:
    expected = (TABLE, LSE)[: len(actual)]
    original = fingerprint_of(reply_with(expected))
    observations = {7: observe_reply(Call("f"), original, expected, reply_with(actual))}
    named = without_other_directions({7: "mistake"}, observations, {"mistake": direction})
    assert named == ({7: "mistake"} if is_named else {})


def test_a_misconception_without_a_stated_look_is_always_named() -> None:
    assert without_other_directions({7: "mistake"}, {}, {}) == {7: "mistake"}
