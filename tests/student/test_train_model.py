"""Odd answers are told, and the text is what it says."""

import pytest
import torch

from manyheads.box.worker.answers import Output, Reply
from manyheads.box.worker.messages import Build, Training
from manyheads.student.train_model import TEXT, TrainingRun, TrainingStopped, attention_of, read_text
from tests.student.real import exercise_of


def test_what_is_trained_is_built_with_the_sizes_of_the_model(attention: Build) -> None:
    trainable = exercise_of("weight_split").train
    assert trainable is not None
    assert attention_of(trainable).kwargs == {"d_in": 64, "d_out": 64, "context_length": 64, "num_heads": 4}


@pytest.mark.parametrize("outputs", [
    pytest.param((), id="nothing"),
    pytest.param((Output("tensor", torch.ones(3)),), id="more losses than steps"),
    pytest.param((Output("tensor", torch.ones(1, 1)),), id="another shape"),
    pytest.param((Output("tensor", torch.ones((), dtype=torch.complex64)),), id="a complex number"),
    pytest.param((Output("str"),), id="no tensor"),
    pytest.param((Output("tensor", torch.ones(())), Output("tensor", torch.ones(()))), id="two answers"),
])  # fmt: skip
def test_an_answer_must_be_what_was_asked(outputs: tuple[Output, ...]) -> None:
    run = TrainingRun(lambda _: Reply(outputs=outputs), read_text())
    with pytest.raises(
        TrainingStopped, match=r"^The attempt sent something that is not an answer, at step 1 of 600\.$"
    ):
        run.step(1)


@pytest.mark.parametrize("number", [-1, 64, 1 << 40])
def test_what_it_writes_must_be_characters_that_there_are(number: int) -> None:
    def ask(message: Training) -> Reply:
        return Reply(outputs=(Output("tensor", torch.tensor([0, number])),))

    run = TrainingRun(ask, read_text())
    assert len(run.vocabulary) == 64
    with pytest.raises(TrainingStopped, match=r"^The attempt sent characters that are not in the vocabulary\.$"):
        run.write("Alice", 2)


def test_remarks_name_the_source_and_are_not_read() -> None:
    assert "Carroll" in TEXT.read_text(encoding="utf-8").splitlines()[0]
    whole = read_text()
    assert "Carroll" not in whole
    assert whole.startswith("Alice was beginning to get very tired of sitting by her sister on the bank")
    assert len(whole) > 100_000
