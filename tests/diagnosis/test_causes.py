"""Whether proved misconceptions can be why something else is wrong."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from manyheads.box.worker.answers import Raised
from manyheads.checks.implementation import Implementation
from manyheads.checks.local import CachedRunner, LocalRecordingRunner, Replays
from manyheads.diagnosis.proofs import can_cause, learns_more, proven_by

REACHED = {"unused": [{"use"}], "changed": [{"values", "argument"}, {"shape", "values", "argument"}]}


@pytest.mark.parametrize(("names", "unexplained", "wrong", "expected"), [
    pytest.param(["unused"], {"values"}, {"values", "use"}, False, id="no mutant of it has wrong values"),
    pytest.param(["changed"], {"values"}, {"values", "argument"}, True, id="a mutant of it has wrong values"),
    pytest.param(["changed"], {"shape", "values"}, {"shape", "values"}, False,
        id="mutants that fail what passes say nothing"),
    pytest.param(["unused", "changed"], {"values"}, {"values", "use", "argument"}, True,
        id="one of several is enough, and the other is a fault of its own"),
    pytest.param(["unlisted"], {"values"}, {"values"}, False, id="without mutants it explains nothing else"),
    pytest.param(["unused"], set(), {"use"}, True, id="nothing else is wrong"),
    pytest.param([], {"values"}, {"values"}, True, id="nothing is proved"),
])  # fmt: skip
def test_what_is_proved_can_cause_what_its_mutants_get_wrong(names, unexplained, wrong, expected) -> None:
    assert can_cause(names, unexplained, wrong, lambda: REACHED) is expected


def test_where_nothing_is_recorded_all_may_be_the_cause() -> None:
    assert can_cause(["unused"], {"values"}, {"values", "use"}, dict)


def test_a_complaint_of_autograd_is_no_changed_argument_where_none_changed() -> None:
    said = "one of the variables needed for gradient computation has been modified by an inplace operation"
    raised = Raised("RuntimeError", ("RuntimeError", "Exception"), said, "gradient", None)
    assert proven_by(raised, mutates=True) == "input_mutated"
    assert proven_by(raised, mutates=False) == ""


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class Normed(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.norm(x))


class Idle(Normed):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + 1


@pytest.mark.parametrize(("made", "expected"), [(Normed, True), (Idle, False), (Plain, False)])
def test_parameters_of_its_own_that_take_part_are_found(made, expected) -> None:
    attempt = LocalRecordingRunner({"Layer": made})
    state = {"layer.weight": torch.eye(2, 3), "layer.bias": torch.ones(2)}
    asked = Implementation(attempt).asking(cotangent=torch.ones(4, 2))
    asked.module("Layer").loaded(state)(torch.arange(12.0).view(4, 3) ** 2)
    reference = CachedRunner({"Layer": Plain}, only_values=True, replays=Replays())
    answers = [(each.reply, reference.execute(each.call).gradients) for each in attempt.transcript]
    assert learns_more(answers) is expected
