"""Structures are read by the form that is asked, steps are handed what earlier ones returned, and opaque parts stay."""

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.box.worker import wire
from manyheads.box.worker.answers import Output
from manyheads.box.worker.execute import execute
from manyheads.box.worker.form import OPAQUE, Form, misfit, read_misfit
from manyheads.box.worker.messages import Build, Call, FollowUp, Returned
from manyheads.box.worker.structure import outputs_of
from manyheads.checks.cast import cast
from manyheads.checks.implementation import Implementation, LocalRunner

PAIR = Form("tuple", ("y", "state"), (Form(), Form("opaque")))
NAMED = Form("tuple", ("mean", "last"), (Form(), Form()))
ONE, TWO = torch.ones(1), torch.full((2,), 2.0)


@dataclass
class Stats:
    mean: Tensor


Named = namedtuple("Named", "mean last")


class Longer(tuple):
    """A tuple that lies to whoever asks it."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Any:
        raise AssertionError("read by code of its own")


def kinds(result: object, form: Form) -> list[str]:
    return [output.kind for output in outputs_of(result, form)]


@pytest.mark.parametrize(("result", "form"), [
    pytest.param((ONE, TWO), Form("tuple", (), (Form(), Form())), id="a tuple"),
    pytest.param([ONE, TWO], Form("tuple", ("a", "b"), (Form(), Form())), id="a list in place of a tuple"),
    pytest.param(Named(ONE, TWO), Form("tuple", (), (Form(), Form())), id="a named tuple"),
    pytest.param(Longer((ONE, TWO)), Form("tuple", (), (Form(), Form())), id="a tuple with code of its own"),
    pytest.param(([ONE], TWO), Form("tuple", (), (Form("tuple", (), (Form(),)), Form())), id="a tuple in a tuple"),
])  # fmt: skip
def test_every_leaf_of_a_structure_is_an_output(result: object, form: Form) -> None:
    assert [output.tensor.tolist() for output in outputs_of(result, form) if output.tensor is not None] == [[1], [2, 2]]


def test_none_is_a_part_like_any_other() -> None:
    assert kinds((ONE, None), NAMED) == ["tensor", "NoneType"]


@pytest.mark.parametrize(("result", "form", "came"), [
    (ONE, PAIR, "tensor"),
    (None, PAIR, "NoneType"),
    ((ONE, ONE, ONE), PAIR, "tuple of 3"),
    ([ONE] * 1000, PAIR, "list of 9"),
    ({"y": ONE}, PAIR, "dict"),
    (Stats(ONE), NAMED, "Stats"),
])  # fmt: skip
def test_another_structure_is_told_and_holds_no_numbers(result: object, form: Form, came: str) -> None:
    assert outputs_of(result, form) == [Output(misfit(0, came))] * 2


def test_the_depth_of_another_structure_is_told() -> None:
    nested = Form("tuple", ("y", "stats"), (Form(), NAMED))
    assert [read_misfit(kind) for kind in kinds((ONE, None), nested)] == [None, (1, "NoneType"), (1, "NoneType")]


class Counter(torch.nn.Module):
    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total = x.sum() + (0 if state is None else state)
        return total * torch.ones(2), total


def keeps(x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    y = x.clone() if state is None else state.add_(x)
    return y, y


def adds(x: Tensor, state: object = None) -> tuple[Tensor, None]:
    return x.add_(1) if state else x, None


STATE = Returned(0, (1,))


@pytest.mark.parametrize(("function", "given", "more", "seen", "expected"), [
    pytest.param(Counter(), [(TWO,), (ONE, STATE), (ONE, STATE)], {},
        lambda reply: [float(o.tensor[0]) if o.tensor is not None else o for o in reply.outputs],
        [4, Output(OPAQUE), 5, Output(OPAQUE), 5, Output(OPAQUE)],
        id="a step gets what an earlier one returned, and none of it is told"),
    pytest.param(keeps, [(ONE,), (ONE, STATE)], {}, lambda reply: [float(o.tensor) for o in reply.outputs[::2]], [1, 2],
        id="an output is told as it was before a later step changed it"),
    pytest.param(lambda *given: ONE, [(ONE,), (ONE, STATE)], {}, lambda reply: [read_misfit(o.kind) for o in reply.outputs],
        [(0, "tensor")] * 2 + [(0, "nothing")] * 2, id="no step follows one that returned another structure"),
    pytest.param(Counter(), [(TWO,), (ONE, STATE)], {"cotangent": (None, None, torch.ones(2))},
        lambda reply: {name: g.tolist() for name, g in reply.gradients.items()},
        {"args.0": [2, 2], "then.0.args.0": [2]}, id="gradients are those of all outputs that have a cotangent"),
    pytest.param(adds, [(ONE,), (ONE, "again")], {}, lambda reply: reply.mutated, ("then.0.args.0",),
        id="what a later step changes is told by its name"),
    pytest.param(Counter(), [(torch.ones(7),), (ONE, STATE)], {"watch": True}, lambda reply: reply.operations.made, (1, 2),
        id="a sequence is watched as one call: nothing that reading its outputs made is any larger"),
])  # fmt: skip
def test_steps(function, given, more, seen, expected) -> None:
    first, *then = given
    call = Call("f", first, then=tuple(map(FollowUp, then)), returns=PAIR, **more)
    assert seen(execute({"f": function}, call, "")) == expected


class Doubles(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x if self.training else x


TURNS = (FollowUp((ONE,), training=True), FollowUp((ONE,)), FollowUp((), {"x": ONE}, training=False))


def test_a_step_puts_the_instance_in_a_mode_in_which_it_stays() -> None:
    reply = execute({"Doubles": Doubles}, Call(Build("Doubles"), (ONE,), then=TURNS), "")
    assert [float(output.tensor) for output in reply.outputs] == [1, 2, 2, 1]


def test_a_sequence_changes_the_mode_before_its_next_call() -> None:
    calls = Implementation(LocalRunner({"Doubles": Doubles})).module("Doubles").training().sequence()
    with pytest.raises(ValueError, match="first call"):
        calls.train()
    calls(ONE)
    calls.train(False)
    calls(ONE)
    calls(ONE)
    assert [float(answer.output) for answer in calls.ask()] == [2, 1, 1]


def test_a_call_with_steps_survives_the_wire_in_another_dtype() -> None:
    call = Call("f", (ONE,), returns=PAIR, then=(*TURNS, FollowUp((ONE, STATE))), cotangent=(ONE, None))
    found = wire.decode(wire.encode(cast(call, "float32")))
    assert isinstance(found, Call)
    assert [step.training for step in found.steps] == [None, True, None, False, None]
    assert (found.returns, found.then[-1].args[1], found.outputs) == (PAIR, STATE, 10)
