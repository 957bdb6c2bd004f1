"""The sketch of a reply, as recorded for pairs of mutants, covers every tensor of its output."""

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
    """Return the sketch of a reply with these tensors and, after the first, a list."""
    outputs = [Output(kind="tensor", tensor=t) for t in tensors]
    return sketch_reply(
        Reply(outputs=(*outputs[:1], Output(kind="list", tensor=None), *outputs[1:]))
    )


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param((FIRST, SECOND + 1e-2), id="only the second differs"),
        pytest.param((FIRST + 1e-2, SECOND), id="only the first differs"),
        pytest.param((FIRST,), id="one is missing"),
    ],
)
def test_the_sketches_of_replies_differ_if_one_tensor_differs(changed: tuple[Tensor, ...]) -> None:
    assert sketch_of(FIRST, SECOND).agree_with(sketch_of(FIRST * (1 + 1e-7), SECOND)).all()
    assert not sketch_of(FIRST, SECOND).agree_with(sketch_of(*changed)).any()


def test_the_sketches_of_replies_differ_if_two_tensors_are_exchanged() -> None:
    assert not sketch_of(FIRST, -FIRST).agree_with(sketch_of(-FIRST, FIRST)).any()


def test_the_sketch_of_an_exception_has_no_numbers() -> None:
    raised = Raised("ValueError", ("ValueError", "Exception"), "no", "call", 3)
    sketch = sketch_reply(Reply(raised=raised))
    assert sketch.agree_with(sketch).all()
    assert sketch.numbers.abs().sum() == 0


def test_the_recorded_reply_of_a_pair_is_the_reply_of_both_mutants_together(sides: Sides) -> None:
    exercise = sides.exercise("mha_by_loop")
    recorded, bank = read(exercise.fingerprints), load_bank(exercise)
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
    assert tried > 20  # of about 40; the others cannot be combined
