"""The classes of `Call.around` act before, during or after a call, and report on it."""

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
from manyheads.checks import moved_after_a_call
from manyheads.diagnosis.mutants_explaining_nondeterminism import are_alike

AROUNDS: list[Around] = [
    MovedAfterACall((Ones((2, 4)), Ones((2, 1), "bool"))),
    ComparedWithModule("Layer", (4, 2, 8), "comparison", "Layer of 4"),
    OperationLimit(20_000),
    PlantedDifference(8.0, 0.3),
    PlantedDifference(-8.0, 0.77, "flash"),
]


def test_each_around_survives_the_wire_and_equals_only_itself():
    assert {type(around) for around in AROUNDS} == {*get_args(Around)}
    for around in AROUNDS:
        received = wire.decode(wire.encode(Call("f", around=around)))
        assert isinstance(received, Call)
        assert [sent for sent in AROUNDS if are_alike(received.around, sent)] == [around]


@pytest.mark.parametrize(
    "around", ["def around(subject, build): ...", {"$": "Build", "target": "f"}]
)
def test_an_around_of_another_class_is_refused(around):
    body = {"$": "Call", "subject": "f", "around": around}
    with pytest.raises(TypeError, match=r"one of MovedAfterACall, .*, PlantedDifference; it is"):
        wire.from_body(body, [])


class MaskKeeper(nn.Module):
    """A module that makes a mask in its first call, and keeps it as a buffer or an attribute."""

    def __init__(self, as_buffer: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.as_buffer, self.mask = as_buffer, None

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        if self.mask is None:
            assert x.dtype == self.layer.weight.dtype
            assert (x.device.type, keep.dtype) == ("cpu", torch.bool)
            assert bool((x == 1).all() and keep.all())
            del self.mask
            mask = x.new_ones(len(x), 1)
            self.register_buffer("mask", mask) if self.as_buffer else setattr(self, "mask", mask)
        return self.layer(x) * self.mask.expand_as(x) * keep


@pytest.mark.parametrize(
    ("as_buffer", "answer"),
    [(True, (None, ["meta"])), (False, ("RuntimeError", []))],
    ids=["a buffer", "an attribute"],
)
def test_moving_a_module_after_a_call_moves_only_its_buffers(as_buffer, answer):
    inputs = torch.empty(3, 4), torch.empty(3, 1, dtype=torch.bool)
    around = moved_after_a_call(inputs)
    assert around == MovedAfterACall((Ones((3, 4)), Ones((3, 1), "bool")))
    build = Build("MaskKeeper", (as_buffer,), dtype="float64")
    x, keep = (torch.empty_like(tensor, device="meta") for tensor in inputs)
    reply = execute({"MaskKeeper": MaskKeeper}, Call(build, (x.double(), keep), around=around), "")
    assert (reply.raised and reply.raised.type, [o.device for o in reply.outputs]) == answer


class Layer(nn.Module):
    def __init__(self, width: int = 4, heads: int = 2, block: int = 8, **more: object) -> None:
        super().__init__()
        self.sizes = {"width": width, "heads": heads}
        self.layer = nn.Linear(width, width)
        self.register_buffer("mask", torch.ones(block, block).tril())
        for name, value in more.items():
            setattr(self, name, value)
        self.register_forward_hook(lambda *_: None)

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
SELF_CONTAINING_LIST = list[object]()
SELF_CONTAINING_LIST.append(SELF_CONTAINING_LIST)
EQUIVALENT_MODULES = {
    "other random weights": (Layer(), Layer()),
    "equal tuples": (Layer(held=(1, "a", torch.half)), Layer(held=(1, "a", torch.half))),
    "one more attribute": (Layer(size="small"), Layer()),
    "in eval mode": (Layer().eval(), Layer()),
    "of a subclass": (Child(), Layer()),
    "of a subclass that makes this size": (Small(), Layer()),
    "objects without attributes": (Layer(held=Holder()), Layer(held=Holder())),
    "lambdas, which cannot be compared": (Layer(held=lambda x: 2 * x), Layer(held=lambda x: x)),
    "lists that hold themselves": (
        Layer(held=SELF_CONTAINING_LIST),
        Layer(held=deepcopy(SELF_CONTAINING_LIST)),
    ),
    "equal dataclasses": (Layer(held=Config(2)), Layer(held=Config(2))),
}
DIFFERENT_MODULES = {
    "a number in a dict": (Layer(heads=4), Layer()),
    "a longer buffer": (Layer(block=16), Layer()),
    "a wider layer": (Layer(6), Layer()),
    "a class with a forward of its own": (Doubles(), Layer()),
    "a class that hides an attribute": (Hides(), Layer()),
    "another class": (nn.Linear(4, 4), Layer()),
    "a forward of its own": (Layer(forward=lambda x: x), Layer()),
    "a twin of a class below, which may compute something else": (Layer(), Child()),
    "a twin with one more attribute": (Layer(), Layer(more=1)),
    "dataclasses of other numbers": (Layer(held=Config(2)), Layer(held=Config(4))),
    "objects of two classes": (Layer(held=Holder()), Layer(held=Config(2))),
}


@pytest.mark.parametrize("name", [*EQUIVALENT_MODULES, *DIFFERENT_MODULES])
def test_a_module_is_reported_as_different_only_if_its_results_may_differ(name):
    module, twin = (EQUIVALENT_MODULES | DIFFERENT_MODULES)[name]
    around = ComparedWithModule("Layer", (4, 2, 8), "comparison", "a layer of 4")
    build = Build("make", device="meta", report=("comparison",))
    namespace = {"Layer": lambda *sizes: sizes == (4, 2, 8) and twin, "make": lambda: module}
    reply = execute(namespace, Call(build, only_build=True, around=around), "")
    assert reply.raised is None
    report = "a layer of 4" if name in EQUIVALENT_MODULES else "something else"
    assert reply.modules[0].attributes == {"comparison": report}


def test_a_call_ends_at_the_limit_of_operations():
    def raised_after(additions: int) -> str | None:
        namespace = {"f": lambda x: sum([x] * additions, x)}
        reply = execute(namespace, Call("f", (torch.zeros(2),), around=OperationLimit(100)), "")
        return reply.raised and reply.raised.type

    assert [raised_after(90), raised_after(100)] == [None, "GeneratorExit"]


X = torch.randn(2, 3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def fused_attention(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x)


def planted_output(
    x: Tensor, position: float = 0.3, function: Callable[[Tensor], Tensor] = fused_attention
) -> Any:
    call = Call("attend", (x,), around=PlantedDifference(8.0, position))
    return execute({"attend": function}, call, "").outputs[0].tensor


def test_a_planted_difference_is_large_at_one_position_and_small_elsewhere():
    differences = (planted_output(X, 0.77) - fused_attention(X)).flatten()
    index = int(0.77 * X.numel())
    assert 8 <= float(differences[index].abs()) <= 24
    remaining = torch.cat([differences[:index], differences[index + 1 :]])
    assert float(remaining.abs().max()) <= 0.6
    assert len(remaining.unique()) == len(remaining)


def test_a_planted_difference_is_deterministic_and_only_in_fused_attention():
    def written_out(x: Tensor) -> Tensor:
        return (x @ x.mT / 2).softmax(-1) @ x

    assert torch.equal(planted_output(X), planted_output(X))
    assert not torch.allclose(
        planted_output(2 * X) - fused_attention(2 * X), planted_output(X) - fused_attention(X)
    )
    assert torch.equal(planted_output(X, function=written_out), written_out(X))


def test_a_planted_difference_keeps_every_shape():
    for x in (X[0], X[0, 0], X.float(), X[:, :, :0]):
        assert planted_output(x).shape == x.shape
    assert planted_output(X, function=torch.vmap(fused_attention)).shape == X.shape


class Flagged(nn.Module):
    def __init__(self, flash: bool) -> None:
        super().__init__()
        self.flash = flash

    def forward(self, x: Tensor) -> Tensor:
        return fused_attention(x)


@pytest.mark.parametrize("flash", [True, False])
def test_a_flag_limits_the_difference_to_modules_that_set_it(flash):
    call = Call(Build("Flagged", (flash,)), (X,), around=PlantedDifference(8.0, 0.3, "flash"))
    output: Any = execute({"Flagged": Flagged}, call, "").outputs[0].tensor
    assert torch.equal(output, planted_output(X) if flash else fused_attention(X))
    assert torch.equal(Flagged(True)(X), fused_attention(X))  # the hook is gone
