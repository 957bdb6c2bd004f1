"""Whether a module is made as a class makes it, and who is still at work after many operations."""

import runpy
from copy import deepcopy
from dataclasses import make_dataclass

import pytest
import torch
from torch import Tensor, nn

from manyheads.box.worker.execute import execute
from manyheads.box.worker.messages import Build, Call
from tests.make import REPOSITORY

CHECK = runpy.run_path(str(REPOSITORY / "grader" / "checks" / "_made_as.py"))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, block: int) -> None:
        super().__init__()
        self.sizes = {"width": width, "heads": heads}
        self.layer = nn.Linear(width, width)
        self.register_buffer("mask", torch.ones(block, block).tril())

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


class Small(Layer):
    def __init__(self) -> None:
        super().__init__(4, 2, 8)


Child = type("Child", (Layer,), {"extra_repr": lambda self: "a child", "channels": lambda self: 4})
Doubles = type("Doubles", (Layer,), {"forward": lambda self, x: 2 * self.layer(x)})
Hides = type("Hides", (Layer,), {"layer": property(lambda self: nn.Identity())})
Holder = type("Holder", (), {})
Config = make_dataclass("Config", ["heads"], eq=False)


def changed_layer(**attributes: object) -> Layer:
    layer = Layer(4, 2, 8)
    for name, value in attributes.items():
        setattr(layer, name, value)
    return layer


ITSELF = list[object]()
ITSELF.append(ITSELF)


def layer_holding(value: object) -> Layer:
    module = changed_layer(held=value)
    module.register_forward_hook(lambda *_: None)
    return module


@pytest.mark.parametrize(
    ("module", "twin", "alike"),
    [
        pytest.param(Layer(4, 2, 8), Layer(4, 2, 8), True, id="other random weights"),
        pytest.param(
            layer_holding((1, "a", None, torch.float32)),
            layer_holding((1, "a", None, torch.float32)),
            True,
            id="equal tuples",
        ),
        pytest.param(changed_layer(size="small"), Layer(4, 2, 8), True, id="an attribute more"),
        pytest.param(Layer(4, 2, 8).eval(), Layer(4, 2, 8), True, id="in eval mode"),
        pytest.param(Child(4, 2, 8), Layer(4, 2, 8), True, id="of a class below"),
        pytest.param(Small(), Layer(4, 2, 8), True, id="of a class below that makes this size"),
        pytest.param(Layer(4, 4, 8), Layer(4, 2, 8), False, id="a number in a dict"),
        pytest.param(Layer(4, 2, 16), Layer(4, 2, 8), False, id="a longer buffer"),
        pytest.param(Layer(6, 2, 8), Layer(4, 2, 8), False, id="a wider layer"),
        pytest.param(
            Doubles(4, 2, 8), Layer(4, 2, 8), False, id="a class with a forward of its own"
        ),
        pytest.param(Hides(4, 2, 8), Layer(4, 2, 8), False, id="a class that hides an attribute"),
        pytest.param(nn.Linear(4, 4), Layer(4, 2, 8), False, id="another class"),
        pytest.param(
            changed_layer(forward=lambda x: x), Layer(4, 2, 8), False, id="a forward of its own"
        ),
        pytest.param(
            Layer(4, 2, 8),
            Child(4, 2, 8),
            False,
            id="a twin of a class below, which may compute something else",
        ),
        pytest.param(Layer(4, 2, 8), changed_layer(more=1), False, id="a twin with more"),
        pytest.param(
            layer_holding(Holder()), layer_holding(Holder()), True, id="objects without attributes"
        ),
        pytest.param(
            layer_holding(lambda x: 2 * x),
            layer_holding(lambda x: x),
            True,
            id="lambdas, which cannot be compared",
        ),
        pytest.param(
            layer_holding(ITSELF),
            layer_holding(deepcopy(ITSELF)),
            True,
            id="lists that hold themselves",
        ),
        pytest.param(
            layer_holding(Config(2)), layer_holding(Config(2)), True, id="equal dataclasses"
        ),
        pytest.param(
            layer_holding(Config(2)),
            layer_holding(Config(4)),
            False,
            id="dataclasses of other numbers",
        ),
        pytest.param(
            layer_holding(Holder()), layer_holding(Config(2)), False, id="objects of two classes"
        ),
    ],
)
def test_two_are_alike_where_nothing_that_they_compute_is_seen_to_differ(module, twin, alike):
    expected, around = CHECK["made_as"]("Layer", 4, 2, 8)
    build = Build("make", device="meta", report=(CHECK["WHAT"],))
    names = {"Layer": lambda *sizes: twin, "make": lambda: module}
    reply = execute(names, Call(build, only_build=True, around=around), "")
    assert expected == "Layer(4, 2, 8)"
    assert reply.raised is None
    assert reply.modules[0].attributes == {CHECK["WHAT"]: expected if alike else "something else"}


def test_who_asks_for_many_operations_is_stopped() -> None:
    def f(x: Tensor, times: int) -> Tensor:
        return sum([x] * times, x)

    few, many = (
        execute({"f": f}, Call("f", (torch.zeros(2), n), around=CHECK["STILL_AT_WORK"]), "")
        for n in (1000, 30_000)
    )
    assert [reply.raised and reply.raised.type for reply in (few, many)] == [None, "GeneratorExit"]
