"""A number that nobody has listed is solved for; where no number fits, or only one without end does, nothing is named."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from manyheads.box.worker.messages import Call
from manyheads.checks.implementation import LocalRunner
from manyheads.checks.local import CachedRunner, Replays
from manyheads.checks.transcript import Exchange
from manyheads.diagnosis.family import COMPARED, GRID, Family, to_fit

Function = Callable[[Tensor], Tensor]


def weights(scale: float = 1.0) -> dict[str, object]:
    return {"weights": lambda x: (x @ x.mT * scale).softmax(-1)}


FAMILY = Family("scale_constant", lambda c: {"scale": c}, 1e-3, 1e3, weights)
REFERENCE = CachedRunner(weights(), "cpu", only_values=True, replays=Replays())


def answered(function: Function, seeds: tuple[int, ...] = (0, 1)) -> list[Exchange]:
    """What an attempt answers to two checks."""
    found = []
    for seed in seeds:
        call = Call(
            "weights", (torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64),)
        )
        reply = LocalRunner({"weights": function}, "cpu", only_values=True).execute(call)
        found.append(Exchange(f"check {seed}", call, reply))
    return found


def solved(function: Function) -> float | None:
    knobs = FAMILY.solve(to_fit(answered(function), REFERENCE), REFERENCE)
    return None if knobs is None else float(str(knobs["scale"]))


@pytest.mark.parametrize("number", [0.0371, 0.5, 1.7, 3.14159, 41.3])
def test_the_number_is_found_to_rounding(number: float) -> None:
    assert solved(lambda x: (x @ x.mT * number).softmax(-1)) == pytest.approx(number, rel=1e-6)


def test_no_number_is_found_for_another_mistake() -> None:
    assert solved(lambda x: (x @ x.mT).softmax(-2)) is None


def test_a_maximum_is_no_scale_however_large() -> None:
    assert solved(lambda x: torch.nn.functional.one_hot((x @ x.mT).argmax(-1), x.shape[1]).double()) is None


def test_what_lies_on_no_curve_is_not_searched_for() -> None:
    made: list[float] = []

    def counted(scale: float = 1.0) -> dict[str, object]:
        made.append(scale)
        return weights(scale)

    family = Family("scale_constant", lambda c: {"scale": c}, 1e-3, 1e3, counted)
    other, scaled = answered(lambda x: (x @ x.mT).softmax(-2)), answered(lambda x: (x @ x.mT * 0.3).softmax(-1))
    assert family.solve(to_fit(other, REFERENCE), REFERENCE) is None
    assert len(made) == GRID + 1
    assert family.solve(to_fit(scaled, REFERENCE), REFERENCE) is not None
    assert len(made) > GRID + 1


def test_an_answer_too_long_to_be_compared_whole_is_still_solved_for() -> None:
    call = Call("weights", (torch.randn(4, 9, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64),))
    reply = LocalRunner(weights(0.7), "cpu", only_values=True).execute(call)
    assert reply.outputs[0].shape == (4, 9, 9)
    assert math.prod(reply.outputs[0].shape) > COMPARED
    knobs = FAMILY.solve((Exchange("check", call, reply),), REFERENCE)
    assert knobs == {"scale": pytest.approx(0.7, rel=1e-6)}


def test_only_wrong_and_finite_answers_of_different_checks_are_fitted() -> None:
    right = answered(lambda x: (x @ x.mT).softmax(-1))
    broken = answered(lambda x: x @ x.mT * math.nan, (2, 3))
    wrong = answered(lambda x: (x @ x.mT * 2).softmax(-1), (4, 5, 6, 7))
    assert to_fit([*right, *broken], REFERENCE) == ()
    assert [e.check for e in to_fit([*right, *wrong[:1], *wrong], REFERENCE)] == ["check 4", "check 5", "check 6"]
