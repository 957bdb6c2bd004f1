"""Modules that are built for a call, and calls of other precisions and devices."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from manyheads.box.connection import Box, Connection
from manyheads.box.worker.answer_call import execute, on_its_device
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Build, Call, Load, StandIn
from manyheads.box.worker.nn_modules import at_most_two_values, build_module


@pytest.fixture
def dirty_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh tensors hold a constant, as memory does that was freed by somebody who had filled
    it.
    """
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **kwargs: empty(*size, **kwargs).fill_(7.0))


class Weights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(4, 12)
        self.norm = nn.LayerNorm(4)


def test_what_the_state_does_not_name_becomes_zero_and_ones_stay_ones(dirty_memory: None) -> None:
    build = Build("Weights", skip_init=True, state={"qkv.weight": torch.ones(12, 4)})
    module = build_module({"Weights": Weights}, build).module
    assert torch.equal(module.qkv.bias, torch.zeros(12))
    assert torch.equal(module.norm.weight, torch.ones(4))


def test_a_weight_that_is_not_initialised_is_known_as_a_weight(dirty_memory: None) -> None:
    module = build_module({"Weights": Weights}, Build("Weights", skip_init=True)).module
    assert not at_most_two_values(module.qkv.weight)


LAYER = Build("Linear", (3, 3), dtype="float32", report=("training",))


def zero_parameters(module: nn.Module) -> None:
    for parameter in module.parameters():
        parameter.data.zero_()


def without_bias(module: nn.Module) -> None:
    del module.bias


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(lambda module: None, False, id="nothing is done"),
        pytest.param(lambda module: module.eval(), False, id="another mode"),
        pytest.param(lambda module: module.double().float(), False, id="another dtype and back"),
        pytest.param(
            lambda module: module.double(), True, id="another dtype, which holds the same numbers"
        ),
        pytest.param(zero_parameters, True, id="other numbers"),
        pytest.param(without_bias, True, id="one that is gone"),
    ],
)
def test_a_call_that_changes_a_parameter_is_told(
    call: Callable[[nn.Module], object], expected: bool
) -> None:
    names = {"Linear": nn.Linear, "touch": lambda module: (call(module), torch.zeros(1))[1]}
    (facts,) = execute(names, Call("touch", (LAYER,)), "attempt.py").modules
    assert facts.changed is expected


X = torch.eye(2) / 3
SOURCE = """
import torch

def product(x):
    return x @ x

def by_name(*, x):
    return x + 1

def fault(x):
    raise ValueError

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x)
"""


@pytest.fixture
def attempt(box: Box) -> Iterator[Connection]:
    connection = box.attempt(Limits())
    assert connection.ask(Load(SOURCE, "attempt.py"), 10.0).raised is None
    yield connection
    connection.close()


def dtype(attempt: Connection, call: Call) -> str | None:
    (output,) = attempt.ask(call, 10.0).outputs
    return output.dtype


def test_a_call_is_made_in_the_precision_it_asks_for_and_the_next_one_is_not(
    attempt: Connection,
) -> None:
    assert dtype(attempt, Call("product", (X,), autocast="bfloat16")) == "bfloat16"
    assert dtype(attempt, Call(Build("Layer"), (X,), autocast="bfloat16")) == "bfloat16"
    assert attempt.ask(Call("fault", (X,), autocast="bfloat16"), 10.0).raised is not None
    assert attempt.ask(Call("product", (X,), memory=True), 10.0).peak is None, (
        "on a CPU no memory is reported"
    )
    assert dtype(attempt, Call("product", (X,))) == "float32"
    # Not in the box: there a CPU's float16 product looks for /sys, and a GPU's does not.
    half = execute({"product": torch.mm}, Call("product", (X, X), autocast="float16"), "")
    assert [out.dtype for out in half.outputs] == ["float16"]


@pytest.mark.parametrize(
    ("call", "device"),
    [
        pytest.param(Call("product", (X,), device="meta"), "meta", id="a tensor"),
        pytest.param(
            Call("by_name", kwargs={"x": X}, device="meta"), "meta", id="a tensor by its name"
        ),
        pytest.param(
            Call(Build("Layer", device="meta"), (X,), device="meta"),
            "meta",
            id="a tensor for a module there",
        ),
        pytest.param(Call("product", (X,)), "cpu", id="nothing where nothing is said"),
    ],
)
def test_what_is_given_is_moved_to_the_device_that_the_call_names(
    attempt: Connection, call: Call, device: str
) -> None:
    reply = attempt.ask(call, 20.0)
    assert reply.raised is None, reply.raised
    assert reply.outputs[0].device == device


@pytest.mark.parametrize(
    ("given", "device"),
    [
        pytest.param(X.to("meta"), "cpu", id="what stands on the meta device stays there"),
        pytest.param(X, "meta", id="all else is moved"),
    ],
)
def test_layers_and_cotangents_are_moved_as_arguments_are(given: torch.Tensor, device: str) -> None:
    sent = on_its_device(
        Call("f", (given, StandIn({"proj": given}, {})), cotangent=(given, None), device=device)
    )
    tensors = [sent.args[0], sent.args[1].linears["proj"], sent.cotangent[0]]
    assert [t.device.type for t in tensors] == ["meta"] * 3


@pytest.mark.gpu
def test_on_a_gpu_the_peak_is_what_a_call_holds_at_once() -> None:
    x = torch.ones(1024, 1024, device="cuda")
    namespace = {"three": lambda x: ((x + 1) + 1) + 1}
    assert execute(namespace, Call("three", (x,)), "").peak is None
    assert execute(namespace, Call("three", (x,), memory=True), "").peak == 2 * x.nbytes
