"""Each class of `Call.around` does what it says around a call, and no other object is taken."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import make_dataclass
from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.box.worker import wire
from manyheads.box.worker.answer_call import execute
from manyheads.box.worker.messages import (
    Around,
    Build,
    Call,
    ComparedWithModule,
    MovedAfterACall,
    Ones,
    OperationLimit,
    PlantedDifference,
)
from manyheads.checks.module_expectations import moved_after_a_call
from manyheads.diagnosis.mutants_explaining_nondeterminism import are_alike

EACH_CLASS: list[Around] = [
    MovedAfterACall((Ones((2, 4)), Ones((2, 1), "bool"))),
    ComparedWithModule("Layer", (4, 2, 8), "comparison", "Layer of 4"),
    OperationLimit(20_000),
    PlantedDifference(8.0, 0.3),
    PlantedDifference(-8.0, 0.77, "flash"),
]


def test_each_class_arrives_as_it_was_sent_and_equals_only_itself() -> None:
    assert {type(around) for around in EACH_CLASS} == {*get_args(Around)}
    for around in EACH_CLASS:
        received = wire.decode(wire.encode(Call("f", around=around)))
        assert isinstance(received, Call)
        assert [sent for sent in EACH_CLASS if are_alike(received.around, sent)] == [around]


@pytest.mark.parametrize(
    "around",
    [
        pytest.param("def around(subject, build): ...", id="a text"),
        pytest.param({"$": "Build", "target": "f"}, id="another message"),
    ],
)
def test_no_other_object_is_put_around_a_call(around: object) -> None:
    body = {"$": "Call", "subject": "f", "around": around}
    with pytest.raises(TypeError, match=r"one of MovedAfterACall, .*, PlantedDifference; it is"):
        wire.from_body(body, [])


class Keeping(nn.Module):
    """Keeps a mask of the first call: as a buffer, or else as an attribute."""

    def __init__(self, as_buffer: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.as_buffer, self.mask = as_buffer, None

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        if self.mask is None:
            assert x.dtype == self.layer.weight.dtype
            assert x.device.type == "cpu"
            assert keep.dtype == torch.bool
            assert bool((x == 1).all() and keep.all())
            del self.mask
            mask = x.new_ones(len(x), 1)
            self.register_buffer("mask", mask) if self.as_buffer else setattr(self, "mask", mask)
        return self.layer(x) * self.mask.expand_as(x) * keep


@pytest.mark.parametrize(
    ("as_buffer", "raised"),
    [pytest.param(True, None, id="a buffer"), pytest.param(False, "RuntimeError", id="no buffer")],
)
def test_a_module_answers_once_and_is_then_moved_with_its_buffers_alone(
    as_buffer: bool, raised: str | None
) -> None:
    inputs = torch.empty(3, 4), torch.empty(3, 1, dtype=torch.bool)
    around = moved_after_a_call(inputs)
    assert around == MovedAfterACall((Ones((3, 4)), Ones((3, 1), "bool")))
    build = Build("Keeping", (as_buffer,), dtype="float64")
    args = [torch.empty_like(tensor, device="meta") for tensor in inputs]
    call = Call(build, (args[0].double(), args[1]), around=around)
    reply = execute({"Keeping": Keeping}, call, "")
    assert (reply.raised and reply.raised.type) == raised
    assert [output.device for output in reply.outputs] == ([] if raised else ["meta"])


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
    around = ComparedWithModule("Layer", (4, 2, 8), "what it makes", "a layer of 4")
    build = Build("make", device="meta", report=("what it makes",))
    names = {"Layer": lambda *sizes: sizes == (4, 2, 8) and twin, "make": lambda: module}
    reply = execute(names, Call(build, only_build=True, around=around), "")
    assert reply.raised is None
    report = "a layer of 4" if alike else "something else"
    assert reply.modules[0].attributes == {"what it makes": report}


def test_a_call_ends_at_the_limit_of_its_operations() -> None:
    def f(x: Tensor, times: int) -> Tensor:
        return sum([x] * times, x)

    few, many = (
        execute({"f": f}, Call("f", (torch.zeros(2), n), around=OperationLimit(100)), "")
        for n in (90, 100)
    )
    assert [reply.raised and reply.raised.type for reply in (few, many)] == [None, "GeneratorExit"]


X = torch.randn(2, 3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def attend(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x)


def planted_output(
    x: Tensor, position: float = 0.3, function: Callable[[Tensor], Tensor] = attend
) -> Tensor:
    call = Call("attend", (x,), around=PlantedDifference(8.0, position))
    output = execute({"attend": function}, call, "").outputs[0].tensor
    assert output is not None
    return output


def test_a_planted_difference_is_large_in_one_place_little_elsewhere_and_nowhere_the_same() -> None:
    apart = planted_output(X, 0.77) - attend(X)
    index = int(0.77 * X.numel())
    assert int(apart.abs().argmax()) == index
    assert 8 <= float(apart.abs().max()) <= 24
    remaining = torch.cat([apart.flatten()[:index], apart.flatten()[index + 1 :]])
    assert float(remaining.abs().max()) <= 0.6
    assert len(remaining.unique()) == len(remaining)


def test_it_follows_the_input_comes_out_the_same_each_time_and_leaves_others_alone() -> None:
    assert torch.equal(planted_output(X), planted_output(X))
    of_twice, of_once = (planted_output(x) - attend(x) for x in (2 * X, X))
    assert not torch.allclose(of_twice, of_once)
    assert torch.equal(
        planted_output(X, function=lambda x: (x @ x.mT / 2).softmax(-1) @ x),
        (X @ X.mT / 2).softmax(-1) @ X,
    )


def test_it_works_in_every_layout_and_on_nothing_at_all() -> None:
    for x in (X[0], X[0, 0], X.float(), X[:, :, :0]):
        assert planted_output(x).shape == x.shape
    assert planted_output(X, function=torch.vmap(attend)).shape == X.shape


class Flagged(nn.Module):
    def __init__(self, flash: bool) -> None:
        super().__init__()
        self.flash = flash

    def forward(self, x: Tensor) -> Tensor:
        return attend(x)


@pytest.mark.parametrize("flash", [True, False])
def test_with_a_flag_it_is_in_the_output_of_modules_whose_flag_is_true(flash: bool) -> None:
    call = Call(Build("Flagged", (flash,)), (X,), around=PlantedDifference(8.0, 0.3, "flash"))
    output: Any = execute({"Flagged": Flagged}, call, "").outputs[0].tensor
    assert torch.equal(output, planted_output(X) if flash else attend(X))
    assert torch.equal(Flagged(True)(X), attend(X))  # the hook is gone
