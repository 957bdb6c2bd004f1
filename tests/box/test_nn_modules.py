"""Modules that the worker builds for a call; calls in other precisions and on other devices."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from manyheads.box.connection import Box, Connection
from manyheads.box.worker.answer_call import execute, on_its_device
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Build, Call, Load, StandIn


class Weights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(4, 12)
        self.norm = nn.LayerNorm(4)


def test_uninitialised_weights_outside_the_state_become_zero(
    monkeypatch,
):
    """Uninitialised tensors hold 7 in this test, as if their memory had been used before."""
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **kwargs: empty(*size, **kwargs).fill_(7.0))
    build = Build("Weights", skip_init=True, state={"qkv.bias": torch.full((12,), 3.0)})
    namespace = {
        "Weights": Weights,
        "extremes": lambda module: torch.stack(
            [torch.stack(torch.aminmax(parameter)) for parameter in module.parameters()]
        ),
    }
    (output,) = execute(namespace, Call("extremes", (build,)), "").outputs
    assert output.tensor.tolist() == [[0, 0], [3, 3], [1, 1], [0, 0]]


def zero_parameters(module: nn.Module) -> None:
    for parameter in module.parameters():
        parameter.data.zero_()


CHANGES: dict[str, tuple[Callable[[nn.Module], object], bool]] = {
    "nothing is done": (lambda module: None, False),
    "another mode": (lambda module: module.eval(), False),
    "another dtype and back": (lambda module: module.double().float(), False),
    "another dtype, which holds the same numbers": (lambda module: module.double(), True),
    "other numbers": (zero_parameters, True),
    "one that is gone": (lambda module: delattr(module, "bias"), True),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_a_reply_reports_whether_parameters_changed(change, expected):
    namespace = {"Linear": nn.Linear, "touch": lambda module: (change(module), torch.zeros(1))[1]}
    layer = Build("Linear", (3, 3), dtype="float32", report=("training",))
    (facts,) = execute(namespace, Call("touch", (layer,)), "attempt.py").modules
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


@pytest.fixture(scope="module")
def module_attempt(box: Box) -> Iterator[Connection]:
    connection = box.attempt(Limits())
    assert connection.ask(Load(SOURCE, "attempt.py"), 10.0).raised is None
    yield connection
    connection.close()


def test_the_precision_of_a_call_does_not_affect_the_next_call(
    module_attempt,
):
    calls = [
        Call("product", (X,), autocast="bfloat16"),
        Call(Build("Layer"), (X,), autocast="bfloat16"),
        Call("fault", (X,), autocast="bfloat16"),
        Call("product", (X,), memory=True),
    ]
    replies = [module_attempt.ask(call, 10.0) for call in calls]
    dtypes = [output.dtype for reply in replies for output in reply.outputs]
    assert dtypes == ["bfloat16", "bfloat16", "float32"]
    assert replies[2].raised is not None
    assert replies[3].peak is None, "on a CPU no memory is reported"
    # Not in the box: there a CPU's float16 product looks for /sys, and a GPU's does not.
    float16_reply = execute({"product": torch.mm}, Call("product", (X, X), autocast="float16"), "")
    assert [out.dtype for out in float16_reply.outputs] == ["float16"]


@pytest.mark.parametrize(
    "call",
    [
        Call("product", (X,), device="meta"),
        Call("by_name", kwargs={"x": X}, device="meta"),
        Call(Build("Layer", device="meta"), (X,), device="meta"),
    ],
    ids=["a tensor", "a tensor by its name", "a tensor for a module there"],
)
def test_arguments_are_moved_to_the_device_of_the_call(module_attempt, call):
    reply = module_attempt.ask(call, 20.0)
    assert reply.raised is None, reply.raised
    assert reply.outputs[0].device == "meta"


@pytest.mark.parametrize(
    ("tensor", "device"),
    [(X.to("meta"), "cpu"), (X, "meta")],
    ids=["a tensor of the meta device stays there", "all others are moved"],
)
def test_layers_and_cotangents_are_moved_like_arguments(tensor, device):
    sent = on_its_device(
        Call("f", (tensor, StandIn({"proj": tensor}, {})), cotangent=(tensor, None), device=device)
    )
    tensors = [sent.args[0], sent.args[1].linears["proj"], sent.cotangent[0]]
    assert [t.device.type for t in tensors] == ["meta"] * 3


@pytest.mark.gpu
def test_on_a_gpu_the_peak_memory_of_a_call_is_reported():
    x = torch.ones(1024, 1024, device="cuda")
    namespace = {"three": lambda x: ((x + 1) + 1) + 1}
    assert execute(namespace, Call("three", (x,)), "").peak is None
    assert execute(namespace, Call("three", (x,), memory=True), "").peak == 2 * x.nbytes
