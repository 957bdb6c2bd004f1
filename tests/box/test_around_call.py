"""Each class of `Call.around` does its work around a call, and no other object is taken."""

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

EACH_CLASS: list[Around] = [
    MovedAfterACall((Ones((2, 4)), Ones((2, 1), "bool"))),
    ComparedWithModule("Layer", (4, 2, 8), "comparison", "Layer of 4"),
    OperationLimit(20_000),
    PlantedDifference(8.0, 0.3),
    PlantedDifference(-8.0, 0.77, "flash"),
]


def test_each_class_arrives_as_it_was_sent_and_equals_only_itself():
    assert {type(around) for around in EACH_CLASS} == {*get_args(Around)}
    for around in EACH_CLASS:
        received = wire.decode(wire.encode(Call("f", around=around)))
        assert isinstance(received, Call)
        assert [sent for sent in EACH_CLASS if are_alike(received.around, sent)] == [around]


@pytest.mark.parametrize(
    "around", ["def around(subject, build): ...", {"$": "Build", "target": "f"}]
)
def test_no_other_object_is_put_around_a_call(around):
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
def test_a_module_answers_once_and_is_then_moved_with_its_buffers_alone(as_buffer, answer):
    inputs = torch.empty(3, 4), torch.empty(3, 1, dtype=torch.bool)
    around = moved_after_a_call(inputs)
    assert around == MovedAfterACall((Ones((3, 4)), Ones((3, 1), "bool")))
    build = Build("Keeping", (as_buffer,), dtype="float64")
    x, keep = (torch.empty_like(tensor, device="meta") for tensor in inputs)
    reply = execute({"Keeping": Keeping}, Call(build, (x.double(), keep), around=around), "")
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
ITSELF = list[object]()
ITSELF.append(ITSELF)
ALIKE = {
    "other random weights": (Layer(), Layer()),
    "equal tuples": (Layer(held=(1, "a", torch.half)), Layer(held=(1, "a", torch.half))),
    "an attribute more": (Layer(size="small"), Layer()),
    "in eval mode": (Layer().eval(), Layer()),
    "of a class below": (Child(), Layer()),
    "of a class below that makes this size": (Small(), Layer()),
    "objects without attributes": (Layer(held=Holder()), Layer(held=Holder())),
    "lambdas, which cannot be compared": (Layer(held=lambda x: 2 * x), Layer(held=lambda x: x)),
    "lists that hold themselves": (Layer(held=ITSELF), Layer(held=deepcopy(ITSELF))),
    "equal dataclasses": (Layer(held=Config(2)), Layer(held=Config(2))),
}
DIFFERENT = {
    "a number in a dict": (Layer(heads=4), Layer()),
    "a longer buffer": (Layer(block=16), Layer()),
    "a wider layer": (Layer(6), Layer()),
    "a class with a forward of its own": (Doubles(), Layer()),
    "a class that hides an attribute": (Hides(), Layer()),
    "another class": (nn.Linear(4, 4), Layer()),
    "a forward of its own": (Layer(forward=lambda x: x), Layer()),
    "a twin of a class below, which may compute something else": (Layer(), Child()),
    "a twin with more": (Layer(), Layer(more=1)),
    "dataclasses of other numbers": (Layer(held=Config(2)), Layer(held=Config(4))),
    "objects of two classes": (Layer(held=Holder()), Layer(held=Config(2))),
}


@pytest.mark.parametrize("name", [*ALIKE, *DIFFERENT])
def test_two_modules_are_alike_unless_a_difference_of_their_results_is_seen(name):
    module, twin = (ALIKE | DIFFERENT)[name]
    around = ComparedWithModule("Layer", (4, 2, 8), "comparison", "a layer of 4")
    build = Build("make", device="meta", report=("comparison",))
    names = {"Layer": lambda *sizes: sizes == (4, 2, 8) and twin, "make": lambda: module}
    reply = execute(names, Call(build, only_build=True, around=around), "")
    assert reply.raised is None
    report = "a layer of 4" if name in ALIKE else "something else"
    assert reply.modules[0].attributes == {"comparison": report}


def test_a_call_ends_at_the_limit_of_its_operations():
    def raised_after(additions: int) -> str | None:
        names = {"f": lambda x: sum([x] * additions, x)}
        reply = execute(names, Call("f", (torch.zeros(2),), around=OperationLimit(100)), "")
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


def test_a_planted_difference_is_large_in_one_place_little_elsewhere_and_nowhere_the_same():
    differences = (planted_output(X, 0.77) - fused_attention(X)).flatten()
    index = int(0.77 * X.numel())
    assert 8 <= float(differences[index].abs()) <= 24
    remaining = torch.cat([differences[:index], differences[index + 1 :]])
    assert float(remaining.abs().max()) <= 0.6
    assert len(remaining.unique()) == len(remaining)


def test_it_follows_the_input_comes_out_the_same_each_time_and_leaves_others_alone():
    def written_out(x: Tensor) -> Tensor:
        return (x @ x.mT / 2).softmax(-1) @ x

    assert torch.equal(planted_output(X), planted_output(X))
    assert not torch.allclose(
        planted_output(2 * X) - fused_attention(2 * X), planted_output(X) - fused_attention(X)
    )
    assert torch.equal(planted_output(X, function=written_out), written_out(X))


def test_it_works_in_every_layout_and_on_empty_tensors():
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
def test_with_a_flag_it_is_in_the_output_of_modules_whose_flag_is_true(flash):
    call = Call(Build("Flagged", (flash,)), (X,), around=PlantedDifference(8.0, 0.3, "flash"))
    output: Any = execute({"Flagged": Flagged}, call, "").outputs[0].tensor
    assert torch.equal(output, planted_output(X) if flash else fused_attention(X))
    assert torch.equal(Flagged(True)(X), fused_attention(X))  # the hook is gone
