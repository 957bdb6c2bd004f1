"""Whether two answers are the same to rounding, and which can be held against the reference."""

import math

import pytest
import torch

from manyheads.box.worker.answers import Output, Reply
from manyheads.box.worker.messages import Build, Call
from manyheads.diagnosis.agree import agree, is_comparable


def reply(*numbers: float, gradient: float = 1.0) -> Reply:
    tensor = torch.tensor(numbers, dtype=torch.float64)
    return Reply((Output("tensor", tensor),), {"args.0": torch.tensor(gradient, dtype=torch.float64)})


def test_the_gradient_of_an_answer_that_is_no_number_says_nothing() -> None:
    """masked_fill and an addition of −inf give NaN in the same places, and not in the same gradients."""
    assert agree(reply(1.0, math.nan), reply(1.0, math.nan, gradient=2.0))
    assert not agree(reply(1.0, math.nan), reply(2.0, math.nan, gradient=2.0))
    assert not agree(reply(1.0, 1.0), reply(1.0, 1.0, gradient=2.0))


@pytest.mark.parametrize(("build", "counts"), [
    pytest.param(Build("Attention", state={"proj.weight": torch.ones(2, 2)}), True, id="given"),
    pytest.param(Build("Attention"), False, id="the module's own"),
])  # fmt: skip
def test_what_depends_on_weights_that_nobody_gave_is_no_evidence(build: Build, counts: bool) -> None:
    """They are drawn in the order in which the module makes its layers, and that order is the student's."""
    assert is_comparable(Call(build, (torch.ones(2),))) is counts
    assert is_comparable(Call("merge", (build, torch.ones(2)))) is counts
