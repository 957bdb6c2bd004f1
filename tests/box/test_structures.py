"""Returned structures are read by the form of the call; texts of attempts become plain text."""

import textwrap
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from manyheads.box.connection import Box
from manyheads.box.worker import wire
from manyheads.box.worker.answer_call import execute
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import (
    NAME_LIMIT,
    Build,
    Call,
    FollowUp,
    Load,
    Output,
    Raised,
    Reply,
    Returned,
    plain,
)
from manyheads.box.worker.result_form import OPAQUE, Form, read_misfit
from manyheads.checks.explain_exceptions import explain, is_refusal
from manyheads.checks.runner import Implementation, LocalRunner, cast
from tests.make import replies

PAIR = Form("tuple", ("y", "state"), (Form(), Form("opaque")))
TWO_TENSORS = Form("tuple", ("mean", "last"), (Form(), Form()))
ONE, TWO = torch.ones(1), torch.full((2,), 2.0)


@dataclass
class Stats:
    mean: Tensor


Named = namedtuple("Named", "mean last")


class Longer(tuple):
    """A tuple with a wrong length and an iterator that must not be used."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Any:
        raise AssertionError("read by code of its own")


def outputs_of(result: object, form: Form) -> tuple[Output, ...]:
    """Return the outputs that the worker reads from this result of a function."""
    return execute({"f": lambda: result}, Call("f", returns=form), "").outputs


@pytest.mark.parametrize(
    ("result", "form"),
    [
        ((ONE, TWO), TWO_TENSORS),
        ([ONE, TWO], TWO_TENSORS),
        (Named(ONE, TWO), TWO_TENSORS),
        (Longer((ONE, TWO)), TWO_TENSORS),
        (([ONE], TWO), Form("tuple", (), (Form("tuple", (), (Form(),)), Form()))),
    ],
    ids=["a tuple", "a list", "a named tuple", "a tuple with code of its own", "a nested tuple"],
)
def test_each_tensor_of_a_structure_is_an_output(result, form):
    assert [output.tensor.tolist() for output in outputs_of(result, form)] == [[1], [2, 2]]


NESTED = Form("tuple", ("y", "stats"), (Form(), TWO_TENSORS))


@pytest.mark.parametrize(
    ("result", "form", "kinds"),
    [
        ((ONE, None), TWO_TENSORS, "tensor, NoneType"),
        (ONE, PAIR, "in place of 0: tensor, in place of 0: tensor"),
        (None, PAIR, "in place of 0: NoneType, in place of 0: NoneType"),
        ((ONE, ONE, ONE), PAIR, "in place of 0: tuple of 3, in place of 0: tuple of 3"),
        ([ONE] * 1000, PAIR, "in place of 0: list of 9, in place of 0: list of 9"),
        ({"y": ONE}, PAIR, "in place of 0: dict, in place of 0: dict"),
        (Stats(ONE), TWO_TENSORS, "in place of 0: Stats, in place of 0: Stats"),
        ((ONE, None), NESTED, "tensor, in place of 1: NoneType, in place of 1: NoneType"),
    ],
)
def test_an_unexpected_structure_is_named_with_its_depth(result, form, kinds):
    outputs = outputs_of(result, form)
    assert ", ".join(output.kind for output in outputs) == kinds
    assert all(output.tensor is None for output in outputs if output.kind != "tensor")


class Counter(nn.Module):
    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total = x.sum() + (0 if state is None else state)
        return total * torch.ones(2), total


class Doubles(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return 2 * x if self.training else x, None


def keep(x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    y = x.clone() if state is None else state.add_(x)
    return y, y


def add_in_place(x: Tensor, state: object = None) -> tuple[Tensor, None]:
    return x.add_(1) if state else x, None


def numbers_of_y(reply: Reply) -> list[float]:
    """Return the first number of y for each call of a sequence."""
    return [float(output.tensor[0]) for output in reply.outputs[::2]]


STATE = Returned(0, (1,))
# three further calls: in training mode, in the same mode, and in evaluation mode
TURNS = (
    FollowUp((ONE,), training=True),
    FollowUp((ONE,)),
    FollowUp((), {"x": ONE}, training=False),
)
AGAIN = (FollowUp((ONE, STATE)),)
# the function or class, the first call, a function of the reply, and its expected value
SEQUENCES: dict[str, tuple[Callable[..., object], Call, Callable[[Reply], object], object]] = {
    "a step gets what an earlier one returned": (
        Counter(),
        Call("f", (TWO,), then=AGAIN * 2),
        numbers_of_y,
        [4, 5, 5],
    ),
    "an opaque part is not reported": (
        Counter(),
        Call("f", (TWO,), then=AGAIN * 2),
        lambda reply: reply.outputs[1::2],
        (Output(OPAQUE),) * 3,
    ),
    "an output is reported as it was before a later step changed it": (
        keep,
        Call("f", (ONE,), then=AGAIN),
        numbers_of_y,
        [1, 2],
    ),
    "no step follows one that returned another structure": (
        lambda *arguments: ONE,
        Call("f", (ONE,), then=AGAIN),
        lambda reply: [read_misfit(o.kind) for o in reply.outputs],
        [(0, "tensor")] * 2 + [(0, "nothing")] * 2,
    ),
    "gradients are those of all outputs that have a cotangent": (
        Counter(),
        Call("f", (TWO,), then=AGAIN, cotangent=(None, None, torch.ones(2))),
        lambda reply: {name: g.tolist() for name, g in reply.gradients.items()},
        {"args.0": [2, 2], "then.0.args.0": [2]},
    ),
    "a changed argument of a later step is reported by its name": (
        add_in_place,
        Call("f", (ONE,), then=(FollowUp((ONE, "again")),)),
        lambda reply: reply.mutated,
        ("then.0.args.0",),
    ),
    "a sequence is watched as one call, without what reading its outputs made": (
        Counter(),
        Call("f", (torch.ones(7),), then=AGAIN, watch=True),
        lambda reply: reply.operations.made,
        (1, 2),
    ),
    "a step puts the instance in a mode in which it stays": (
        Doubles,
        Call(Build("f"), (ONE,), then=TURNS),
        numbers_of_y,
        [1, 2, 2, 1],
    ),
}


@pytest.mark.parametrize(
    ("function", "call", "observe", "expected"), SEQUENCES.values(), ids=SEQUENCES
)
def test_a_sequence_of_calls(function, call, observe, expected):
    call = Call(**{**vars(call), "returns": PAIR})
    assert observe(execute({"f": function}, call, "")) == expected


def test_a_sequence_may_change_mode_before_each_later_call():
    runner = LocalRunner({"Doubles": lambda: Doubles()})
    forms = {"Doubles": PAIR}
    calls = Implementation(runner, forms=forms).module("Doubles").in_training_mode().sequence()
    with pytest.raises(ValueError, match="first call"):
        calls.train()
    calls(ONE)
    calls.train(False)
    calls(ONE)
    calls(ONE)
    assert [float(answer["y"].output) for answer in calls.ask()] == [2, 1, 1]


def test_a_call_with_steps_survives_the_wire_in_another_dtype():
    call = Call("f", (ONE,), returns=PAIR, then=(*TURNS, *AGAIN), cotangent=(ONE, None))
    decoded = wire.decode(wire.encode(cast(call, "float32")))
    assert isinstance(decoded, Call)
    assert [step.training for step in decoded.steps] == [None, True, None, False, None]
    assert (decoded.returns, decoded.then[-1].args[1], decoded.outputs) == (PAIR, STATE, 10)


LIMITS = Limits(memory_mib=768)
X = torch.ones(2, dtype=torch.float64)
HOSTILE_STR = """
class Text(str):
    def __getitem__(self, at): return 7
    def __len__(self): raise OSError
    def __eq__(self, other): raise OSError
    def __hash__(self): raise OSError
    def __str__(self): raise OSError
    def encode(self, *args): return 7
    def isascii(self): return True
"""
ODD_CLASS = """
class Meta(type):
    __name__ = property(lambda self: 7)
    __mro__ = property(lambda self: 7)
class Odd(ValueError, metaclass=Meta):
    __traceback__ = __cause__ = __context__ = __class__ = args = property(lambda self: 7)
    def __str__(self): return "odd"
"""
TRACEBACK = "import types, sys\ntb = types.TracebackType(None, sys._getframe(), 0, %s)\n"
VALUE_ERRORS = {
    "half a surrogate pair": r'raise ValueError("caf\udce9")',
    "bytes as a file system reads them": r'import os; raise ValueError(os.fsdecode(b"caf\xe9"))',
    "2,000 halves of surrogate pairs": r'raise ValueError("\ud800" * 2000)',
    "a NUL": r'raise ValueError("\0")',
    "ten million characters": 'raise ValueError("é" * 10_000_000)',
    "a __str__ that returns no text": "class E(ValueError):\n    __str__ = lambda self: 7\nraise E",
    "a __str__ that raises": "class E(ValueError):\n    def __str__(self): raise OSError\nraise E",
    "a __str__ that exits": (
        "class E(ValueError):\n    def __str__(self): raise SystemExit\nraise E"
    ),
    "a __str__ that recurses": (
        "class E(ValueError):\n    def __str__(self): return str(self)\nraise E"
    ),
    "a text with methods of its own": f"{HOSTILE_STR}raise ValueError(Text('x'))",
    "a __str__ that returns such a text": (
        f"{HOSTILE_STR}class E(ValueError):\n    __str__ = lambda self: Text('x')\nraise E"
    ),
    "a class with such a name": f"{HOSTILE_STR}raise type(Text('E'), (ValueError,), {{}})",
    "a class with a name of 10,000 characters": "raise type('é' * 10_000, (ValueError,), {})",
    "a class with 100 bases": (
        "raise type('E', (*(type(f'B{i}', (ValueError,), {}) for i in range(100)),), {})"
    ),
    "a class that lies about itself": f"{ODD_CLASS}raise Odd",
    "a class whose attributes all raise": (
        "class E(ValueError):\n    def __getattribute__(self, name): raise OSError\nraise E"
    ),
    "a traceback with a negative line": (
        f"{TRACEBACK % '-5'}raise ValueError('x').with_traceback(tb)"
    ),
    "a traceback with a line beyond the file": (
        f"{TRACEBACK % '2**31 - 1'}raise ValueError('x').with_traceback(tb)"
    ),
    "an exception that is its own cause": (
        "e = ValueError('x')\ne.__cause__ = e.__context__ = e\nraise e"
    ),
}
OTHER_EXCEPTIONS = {
    "ExceptionGroup": 'raise ExceptionGroup("caf\\udce9", [ValueError("x")])',
    "BaseExceptionGroup": 'raise BaseExceptionGroup("x", [SystemExit()])',
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "SyntaxError": "raise SyntaxError('x', ('a.py', -7, 10**30, 'text', 'odd', None))",
    "GeneratorExit": "raise GeneratorExit",
}


@pytest.fixture(scope="module")
def exceptions(box: Box) -> dict[str, Raised]:
    """Return the exception of each body, raised in one process by successive calls."""
    bodies = VALUE_ERRORS | OTHER_EXCEPTIONS
    functions = [
        f"def f{number}():\n{textwrap.indent(body, '    ')}\n"
        for number, body in enumerate(bodies.values())
    ]
    calls = [Call(f"f{number}") for number in range(len(bodies))]
    raised = [reply.raised for reply in replies(box, LIMITS, "".join(functions), *calls)]
    return dict(zip(bodies, raised, strict=True))


@pytest.mark.parametrize("name", VALUE_ERRORS)
def test_a_value_error_is_a_refusal_whatever_its_text_or_class(exceptions, name):
    raised = exceptions[name]
    assert is_refusal(raised)
    assert explain(raised).startswith("raised ValueError")
    assert raised.message.encode() is not None


@pytest.mark.parametrize("name", OTHER_EXCEPTIONS)
def test_any_other_exception_is_reported_by_its_type(exceptions, name):
    assert exceptions[name].type == name


@pytest.mark.parametrize(
    ("load", "stopped"),
    [
        pytest.param('raise ValueError("caf\\udce9")', [(r"caf\udce9", 1)], id="an exception"),
        pytest.param(
            Load("x = 1\ny = (\n", "a.ipynb", (1, 2)),
            [("'(' was never closed", 2)],
            id="no line number in the message",
        ),
        pytest.param(r'print("caf\udce9", "\ud800")', [], id="printed text does not count"),
    ],
)
def test_a_load_reports_statements_that_raised(box, load, stopped):
    (reply,) = replies(box, LIMITS, load)
    assert reply.raised is None
    assert [(statement.message, statement.line) for statement in reply.stopped] == stopped


MODULE = f"""{HOSTILE_STR}
from torch import nn
import torch

class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        setattr(self, "caf\\udce9", nn.Parameter(torch.ones(2, dtype=torch.float64)))
        setattr(self, "é" * 5000, nn.Parameter(torch.ones(2, dtype=torch.float64)))
        self.register_buffer("\\0", torch.ones(2))
        self.flash = Text("yes\\udce9" * 1000)
        self.size = 10**5000
        self.rate = torch.ones(()).double().numpy()[()]

    def forward(self, x):
        return x * sum(self.parameters())

class Computed(Wide):
    @property
    def head_dim(self):
        raise OSError("caf\\udce9")

def long_name(): return type('é' * 10_000, (), {{}})()
def own_text(): return Text('x')
def own_name(): return type(Text('E'), (), {{}})()
"""


def build(target: str, *report: str) -> Call:
    """Return a call that builds this class and reports these attributes."""
    return Call(Build(target, report=report), (X,), cotangent=X)


def test_names_and_attributes_of_an_attempt_become_short_plain_text(box):
    computed, wide, *returned = replies(
        *(box, LIMITS, MODULE, build("Computed", "head_dim")),
        build("Wide", "flash", "size", "rate"),
        *map(Call, ("long_name", "own_text", "own_name")),
    )
    assert (computed.raised.type, computed.raised.message) == ("OSError", r"caf\udce9")
    (facts,) = wide.modules
    assert {*facts.parameters} == {r"caf\udce9", "é" * NAME_LIMIT}
    assert {*wide.gradients} == {*facts.parameters, "args.0"}
    flash = (r"yes\udce9" * 100)[:NAME_LIMIT]
    assert facts.attributes == {"flash": flash, "size": "int", "rate": 1.0}
    assert [reply.outputs[0].kind for reply in returned] == ["é" * NAME_LIMIT, "Text", "E"]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(st.characters(codec=None, exclude_categories=())), st.integers(0, 30))
def test_plain_text_can_be_encoded_and_is_short_enough(text, limit):
    plain_text = plain(text, limit)
    assert type(plain_text) is str
    assert len(plain_text) <= limit
    plain_text.encode()
