"""Whether two answers are the same: to rounding, and where rounding is all that is left."""

from __future__ import annotations

import math

import pytest
import torch

from manyheads.box.worker.answers import Output, Reply
from manyheads.box.worker.messages import Build, Call
from manyheads.diagnosis.agree import agree, agree_except_huge, is_comparable


def reply(*numbers: float, gradient: float = 1.0) -> Reply:
    tensor = torch.tensor(numbers, dtype=torch.float64)
    return Reply((Output("tensor", tensor),), {"args.0": torch.tensor(gradient, dtype=torch.float64)})


@pytest.mark.parametrize(("other", "same"), [
    pytest.param(reply(1.0, math.nan), True, id="the same"),
    pytest.param(reply(1.0, 3e15), True, id="a huge number where the other has none"),
    pytest.param(reply(1.0, -math.inf), True, id="an infinity where the other has no number"),
    pytest.param(reply(1.0, 2.0), False, id="an ordinary number where the other has none"),
    pytest.param(reply(1.1, 3e15), False, id="an ordinary number that differs"),
    pytest.param(reply(1.0, 3e15, gradient=2.0), True, id="a gradient, which is not defined there"),
    pytest.param(reply(1.0), False, id="another shape"),
    pytest.param(Reply((), {}), False, id="nothing"),
    pytest.param(Reply((Output("tensor", torch.ones(2, dtype=torch.bool)),), reply().gradients), False, id="a mask"),
])  # fmt: skip
def test_where_a_divisor_comes_near_nothing_rounding_decides(other: Reply, same: bool) -> None:
    mine = reply(1.0, math.nan)
    assert agree_except_huge(mine, other) is same
    assert agree_except_huge(other, mine) is same


def test_the_gradient_of_an_answer_that_is_no_number_says_nothing() -> None:
    """masked_fill and an addition of −inf give NaN in the same places, and not in the same gradients."""
    assert agree(reply(1.0, math.nan), reply(1.0, math.nan, gradient=2.0))
    assert not agree(reply(1.0, math.nan), reply(2.0, math.nan, gradient=2.0))
    assert not agree(reply(1.0, 1.0), reply(1.0, 1.0, gradient=2.0))


def test_a_huge_number_of_the_other_sign_is_another() -> None:
    assert not agree_except_huge(reply(1e9), reply(-math.inf))
    assert agree_except_huge(reply(1e9), reply(math.inf))
    assert not agree(reply(1e9), reply(math.inf))


@pytest.mark.parametrize(("build", "counts"), [
    pytest.param(Build("Attention", state={"proj.weight": torch.ones(2, 2)}), True, id="given"),
    pytest.param(Build("Attention"), False, id="the module's own"),
])  # fmt: skip
def test_what_depends_on_weights_that_nobody_gave_is_no_evidence(build: Build, counts: bool) -> None:
    """They are drawn in the order in which the module makes its layers, and that order is the student's."""
    assert is_comparable(Call(build, (torch.ones(2),))) is counts
    assert is_comparable(Call("merge", (build, torch.ones(2)))) is counts
