"""A recorded curve as a file: the same bytes for the same content, and one sentence where it cannot be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.course import CourseError
from manyheads.course.file import Trainable
from manyheads.student.recorded_training import Recorded, read, save, setup_of
from manyheads.student.training_plan import Curve, TrainingText, plan_for

pytestmark = pytest.mark.recorded

CURVE = Curve((4.5, 3.25, 2.0), {2: 3.0, 3: 2.5})
WEIGHTS = {"blocks.0.attention.qkv.weight": torch.randn(6, 2), "norm.bias": torch.zeros(2)}
SENTENCE = ((torch.randn(1, 4, 2), torch.randn(1, 4, 2)), (torch.randn(1, 4, 2), torch.randn(1, 4, 2)))
RECORDED = Recorded(CURVE, {2: 0.5, 3: 0.25}, WEIGHTS, "abc", SENTENCE, (1.5, 2.0))


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    path = tmp_path / "curve.safetensors"
    path.write_bytes(save(RECORDED))
    found = read(path)
    assert (found.curve, found.spread, found.setup, found.drawn) == (CURVE, RECORDED.spread, "abc", (1.5, 2.0))
    assert found.weights.keys() == WEIGHTS.keys()
    for name, weight in WEIGHTS.items():
        torch.testing.assert_close(found.weights[name], weight, rtol=1e-3, atol=1e-3)
    for one, other in zip(found.sentence, SENTENCE, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert save(RECORDED) == path.read_bytes()


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "is missing"), (b"", "cannot be read"), (save(RECORDED)[:-9], "cannot be read")],
    ids=["no file", "an empty one", "one that is cut short"],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "curve.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        CourseError, match=rf"curve\.safetensors {problem}.*Next: git checkout .*course release --curves"
    ):
        read(path)


def test_a_setup_hangs_on_text_plan_and_arguments(text: TrainingText) -> None:
    trainable = Trainable(module="A", arguments={"n": "C"})
    plan = plan_for(text)
    same = setup_of(trainable, text, plan)
    others = [
        setup_of(Trainable(module="A", arguments={"n": "T"}), text, plan),
        setup_of(trainable, replace(text, ids=text.ids[:-1]), plan),
        setup_of(trainable, text, replace(plan, rate=0.1)),
    ]
    assert setup_of(trainable, text, plan_for(text)) == same
    assert len({same, *others}) == 4
