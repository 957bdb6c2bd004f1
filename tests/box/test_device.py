"""Calls in lower precision, and calls that report their memory. In the real box."""

from collections.abc import Iterator

import pytest
import torch

from manyheads.box.connection import Connection
from manyheads.box.level import Box
from manyheads.box.worker.execute import execute, on_its_device
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Build, Call, Load, StandIn

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


def test_a_call_is_made_in_the_precision_it_asks_for_and_the_next_one_is_not(attempt: Connection) -> None:
    assert dtype(attempt, Call("product", (X,), autocast="bfloat16")) == "bfloat16"
    assert dtype(attempt, Call(Build("Layer"), (X,), autocast="bfloat16")) == "bfloat16"
    assert attempt.ask(Call("fault", (X,), autocast="bfloat16"), 10.0).raised is not None
    assert dtype(attempt, Call("product", (X,))) == "float32"


def test_float16_is_such_a_precision_too() -> None:
    """Not in the box: there a CPU's float16 product looks for /sys, and a GPU's does not."""
    reply = execute({"product": torch.mm}, Call("product", (X, X), autocast="float16"), "")
    assert [out.dtype for out in reply.outputs] == ["float16"]


def test_on_a_cpu_no_memory_is_reported(attempt: Connection) -> None:
    assert attempt.ask(Call("product", (X,), memory=True), 10.0).peak is None


@pytest.mark.parametrize(("call", "device"), [
    pytest.param(Call("product", (X,), device="meta"), "meta", id="a tensor"),
    pytest.param(Call("by_name", kwargs={"x": X}, device="meta"), "meta", id="a tensor by its name"),
    pytest.param(Call(Build("Layer", device="meta"), (X,), device="meta"), "meta", id="a tensor for a module there"),
    pytest.param(Call("product", (X,)), "cpu", id="nothing where nothing is said"),
])  # fmt: skip
def test_what_is_given_is_moved_to_the_device_that_the_call_names(attempt: Connection, call: Call, device: str) -> None:
    reply = attempt.ask(call, 20.0)
    assert reply.raised is None, reply.raised
    assert reply.outputs[0].device == device


@pytest.mark.parametrize(("given", "device"), [
    pytest.param(X.to("meta"), "cpu", id="what stands on the meta device stays there"),
    pytest.param(X, "meta", id="all else is moved"),
])  # fmt: skip
def test_layers_and_cotangents_are_moved_as_arguments_are(given: torch.Tensor, device: str) -> None:
    sent = on_its_device(Call("f", (given, StandIn({"proj": given}, {})), cotangent=(given, None), device=device))
    found = [sent.args[0], sent.args[1].linears["proj"], sent.cotangent[0]]
    assert [t.device.type for t in found] == ["meta"] * 3


@pytest.mark.gpu
def test_on_a_gpu_the_peak_is_what_a_call_holds_at_once() -> None:
    x = torch.ones(1024, 1024, device="cuda")
    namespace = {"three": lambda x: ((x + 1) + 1) + 1}
    assert execute(namespace, Call("three", (x,)), "").peak is None
    assert execute(namespace, Call("three", (x,), memory=True), "").peak == 2 * x.nbytes
