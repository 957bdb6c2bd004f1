"""A module that is built without random initial weights answers the same, whatever its memory held before; and what is told
of its parameters after a call."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from manyheads.box.worker.execute import execute
from manyheads.box.worker.messages import Build, Call
from manyheads.box.worker.modules import at_most_two_values, build_module


@pytest.fixture
def dirty_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh tensors hold a constant, as memory does that was freed by somebody who had filled it."""
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **kwargs: empty(*size, **kwargs).fill_(7.0))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(4, 12)
        self.norm = nn.LayerNorm(4)


def test_what_the_state_does_not_name_becomes_zero_and_ones_stay_ones(dirty_memory: None) -> None:
    build = Build("Layer", skip_init=True, state={"qkv.weight": torch.ones(12, 4)})
    module = build_module({"Layer": Layer}, build).module
    assert torch.equal(module.qkv.bias, torch.zeros(12))
    assert torch.equal(module.norm.weight, torch.ones(4))


def test_a_weight_that_is_not_initialised_is_known_as_a_weight(dirty_memory: None) -> None:
    module = build_module({"Layer": Layer}, Build("Layer", skip_init=True)).module
    assert not at_most_two_values(module.qkv.weight)


LAYER = Build("Linear", (3, 3), dtype="float32", report=("training",))


def zeroed(module: nn.Module) -> None:
    for parameter in module.parameters():
        parameter.data.zero_()


def without_bias(module: nn.Module) -> None:
    del module.bias


@pytest.mark.parametrize(("call", "expected"), [
    pytest.param(lambda module: None, False, id="nothing is done"),
    pytest.param(lambda module: module.eval(), False, id="another mode"),
    pytest.param(lambda module: module.double().float(), False, id="another dtype and back"),
    pytest.param(lambda module: module.double(), True, id="another dtype, which holds the same numbers"),
    pytest.param(zeroed, True, id="other numbers"),
    pytest.param(without_bias, True, id="one that is gone"),
])  # fmt: skip
def test_a_call_that_changes_a_parameter_is_told(call: Callable[[nn.Module], object], expected: bool) -> None:
    names = {"Linear": nn.Linear, "touch": lambda module: (call(module), torch.zeros(1))[1]}
    (facts,) = execute(names, Call("touch", (LAYER,)), "attempt.py").modules
    assert facts.changed is expected
