"""A reply about several outputs says what its call asks for, and nothing else."""

import pytest
import torch

from manyheads.box.worker.answers import Output, Raised, Reply
from manyheads.box.worker.form import OPAQUE, Form, misfit
from manyheads.box.worker.messages import Call, FollowUp, Returned
from manyheads.judge.attempt_runner import validate_reply

PAIR = Form("tuple", ("y", "state"), (Form(), Form("opaque")))
CALL = Call("f", returns=PAIR, then=(FollowUp((Returned(0, (1,)),)),))
TENSOR, HIDDEN = Output("tensor", torch.ones(2), "float32", "cpu", (2,)), Output(OPAQUE)
OTHER = Output(misfit(0, "tensor"))


def test_an_output_for_each_leaf_of_each_step_is_an_answer() -> None:
    assert not validate_reply(CALL, Reply((TENSOR, HIDDEN, TENSOR, HIDDEN)))
    assert not validate_reply(CALL, Reply((OTHER,) * 4))


@pytest.mark.parametrize("outputs", [
    pytest.param((TENSOR, HIDDEN), id="a step without an answer"),
    pytest.param((TENSOR, HIDDEN) * 3, id="an answer too many"),
    pytest.param((TENSOR, TENSOR) * 2, id="a tensor in place of an opaque part"),
    pytest.param((TENSOR, Output(OPAQUE, torch.ones(1), shape=(1,))) * 2, id="an opaque part with numbers"),
    pytest.param((HIDDEN, HIDDEN) * 2, id="an opaque part in place of a tensor"),
    pytest.param((Output(misfit(0, "tensor"), torch.ones(1), shape=(1,)), HIDDEN) * 2, id="a misfit with numbers"),
])  # fmt: skip
def test_anything_else_is_none(outputs: tuple[Output, ...]) -> None:
    assert validate_reply(CALL, Reply(outputs))


def test_a_step_s_arguments_may_be_named_and_no_others() -> None:
    call = Call("f", (torch.ones(1),), then=(FollowUp((torch.ones(1),)),))
    assert not validate_reply(call, Reply((TENSOR,) * 2, mutated=("args.0", "then.0.args.0")))
    assert validate_reply(call, Reply((TENSOR,) * 2, mutated=("then.1.args.0",)))


def test_a_call_runs_no_cells() -> None:
    cell = Raised("E", ("E",), "", "load", None)
    assert validate_reply(CALL, Reply((TENSOR, HIDDEN, TENSOR, HIDDEN), stopped=(cell,)))
