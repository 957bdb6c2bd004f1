"""What is kept of a pair's answer has a part of each tensor that is returned."""

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Output, Raised, Reply
from manyheads.checks.runner import LocalRunner
from manyheads.diagnosis.bank import load_bank
from manyheads.diagnosis.compact_storage import ReplySketch, sketch_reply
from manyheads.diagnosis.recording_file import read
from tests.diagnosis.both_sides import Sides

FIRST, SECOND = torch.linspace(-1, 2, 12).view(3, 4), torch.linspace(0, 5, 3)


def sketch_of(*tensors: Tensor) -> ReplySketch:
    """What is kept of a reply with these tensors, and something between them that is none."""
    outputs = [Output(kind="tensor", tensor=t) for t in tensors]
    return sketch_reply(
        Reply(outputs=(*outputs[:1], Output(kind="list", tensor=None), *outputs[1:]))
    )


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((FIRST, SECOND + 1e-2), id="only the second differs"),
        pytest.param((FIRST + 1e-2, SECOND), id="only the first differs"),
        pytest.param((FIRST,), id="one is missing"),
    ],
)
def test_answers_with_one_other_tensor_are_told_apart(other: tuple[Tensor, ...]) -> None:
    assert sketch_of(FIRST, SECOND).agree_with(sketch_of(FIRST * (1 + 1e-7), SECOND)).all()
    assert not sketch_of(FIRST, SECOND).agree_with(sketch_of(*other)).any()


def test_two_tensors_that_change_places_are_told_apart() -> None:
    assert not sketch_of(FIRST, -FIRST).agree_with(sketch_of(-FIRST, FIRST)).any()


def test_of_an_exception_there_are_no_numbers() -> None:
    raised = Raised("ValueError", ("ValueError", "Exception"), "no", "call", 3)
    sketch = sketch_reply(Reply(raised=raised))
    assert sketch.agree_with(sketch).all()
    assert sketch.numbers.abs().sum() == 0


def test_what_is_recorded_of_pairs_is_what_both_faults_together_answer(sides: Sides) -> None:
    loop = sides.exercise("mha_by_loop")
    recorded, bank = read(loop.fingerprints), load_bank(loop)
    pairs, tried = recorded.pairs.rows_at(recorded.pairs.answers.numbers.abs().sum(1) > 0), 0
    for row in range(0, len(pairs.first), len(pairs.first) // 40):
        first, second, call = (
            int(column[row]) for column in (pairs.first, pairs.second, pairs.probe)
        )
        assert [bank.mutants[m].id for m in (first, second)] == [
            recorded.mutants[m].id for m in (first, second)
        ]
        together = bank.combine(bank.mutants[first], bank.mutants[second])
        if together is not None:
            reply = LocalRunner(together, only_values=True).execute(recorded.calls[call])
            tried += 1
            assert pairs.answers.rows_at([row]).agree_with(sketch_reply(reply)).item()
    assert tried > 20
