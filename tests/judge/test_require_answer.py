"""What is due is known for each part, so that None as one part does not excuse None as another."""

import torch

from manyheads.box.worker.answers import Output, Reply
from manyheads.box.worker.form import Form
from manyheads.box.worker.messages import Build, Call
from manyheads.checks.implementation import LocalRunner
from manyheads.checks.transcript import Exchange
from manyheads.judge.require_answer import AsksNothingError, kinds_of, unanswered


class Module(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, None]:
        return x, None


def test_what_withdraws_a_pass_says_whose_answer_it_is() -> None:
    first, last = ({name: lambda x: x} for name in ("first", "last"))
    reference = LocalRunner(first | last)
    calls = [Call(name, (torch.ones(2),)) for name in ("first", "last")]
    nan = Reply((Output("tensor", torch.full((2,), torch.nan)),))
    asked = [Exchange("check", calls[0], nan), Exchange("check", calls[1], reference.execute(calls[1]))]
    why = unanswered(asked, reference)
    assert (str(why[0]), why[1]) == ("the output: 2 of 2 values are NaN, the first at (0,)", "first")


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
    assert isinstance((why or ["counts"])[0], AsksNothingError)
