"""What is due is known for each part, so that None as one part does not excuse None as another."""

import torch

from manyheads.box.worker.form import Form
from manyheads.box.worker.messages import Build, Call
from manyheads.checks.implementation import LocalRunner
from manyheads.checks.transcript import Exchange
from manyheads.judge.require_answer import AsksNothingError, kinds_of, unanswered


class Module(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, None]:
        return x, None


def test_a_call_that_only_builds_says_nothing_of_the_parts() -> None:
    build, pair = Build("Module"), Form("tuple", ("y", "rest"), (Form(), Form()))
    calls = [Call(build, only_build=True), Call(build, (torch.ones(2),), returns=pair)]
    assert kinds_of(calls, LocalRunner({"Module": Module})) == (frozenset({"tensor"}), frozenset({"NoneType"}))


def test_a_call_that_the_reference_refuses_is_a_fault_of_the_check_only_where_nobody_answers() -> None:
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise ValueError(len(x))

    reference, call = LocalRunner({"f": refuse}), Call("f", (torch.ones(2),))
    mine = LocalRunner({"f": lambda x: x}).execute(call)  # a size of the attempt's own makes a call like this one
    assert unanswered([Exchange("check", call, mine)], reference) is None
    why = unanswered([Exchange("check", call, reference.execute(call))], reference)
    assert isinstance(why, AsksNothingError)
