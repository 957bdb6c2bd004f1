"""What an attempt returns or says is read by the form that is asked, and as plain characters: no
text ends an attempt.
"""

import random
import textwrap
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.box.connection import Box
from manyheads.box.worker import wire
from manyheads.box.worker.answer_call import execute, outputs_of
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import (
    NAME_LIMIT,
    Build,
    Call,
    FollowUp,
    Load,
    Output,
    Raised,
    Returned,
    plain,
)
from manyheads.box.worker.result_form import OPAQUE, Form, misfit, read_misfit
from manyheads.checks.explain_exceptions import explain, is_refusal
from manyheads.checks.runner import Implementation, LocalRunner, cast
from tests.make import replies

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


def output_kinds(result: object, form: Form) -> list[str]:
    return [output.kind for output in outputs_of(result, form)]


@pytest.mark.parametrize(
    ("result", "form"),
    [
        pytest.param((ONE, TWO), Form("tuple", (), (Form(), Form())), id="a tuple"),
        pytest.param(
            [ONE, TWO], Form("tuple", ("a", "b"), (Form(), Form())), id="a list in place of a tuple"
        ),
        pytest.param(Named(ONE, TWO), Form("tuple", (), (Form(), Form())), id="a named tuple"),
        pytest.param(
            Longer((ONE, TWO)),
            Form("tuple", (), (Form(), Form())),
            id="a tuple with code of its own",
        ),
        pytest.param(
            ([ONE], TWO),
            Form("tuple", (), (Form("tuple", (), (Form(),)), Form())),
            id="a tuple in a tuple",
        ),
    ],
)
def test_every_leaf_of_a_structure_is_an_output(result: object, form: Form) -> None:
    assert [
        output.tensor.tolist() for output in outputs_of(result, form) if output.tensor is not None
    ] == [[1], [2, 2]]


def test_none_is_a_part_like_any_other() -> None:
    assert output_kinds((ONE, None), NAMED) == ["tensor", "NoneType"]


@pytest.mark.parametrize(
    ("result", "form", "came"),
    [
        (ONE, PAIR, "tensor"),
        (None, PAIR, "NoneType"),
        ((ONE, ONE, ONE), PAIR, "tuple of 3"),
        ([ONE] * 1000, PAIR, "list of 9"),
        ({"y": ONE}, PAIR, "dict"),
        (Stats(ONE), NAMED, "Stats"),
    ],
)
def test_another_structure_is_told_and_holds_no_numbers(
    result: object, form: Form, came: str
) -> None:
    assert outputs_of(result, form) == [Output(misfit(0, came))] * 2


def test_the_depth_of_another_structure_is_told() -> None:
    nested = Form("tuple", ("y", "stats"), (Form(), NAMED))
    assert [read_misfit(output_kind) for output_kind in output_kinds((ONE, None), nested)] == [
        None,
        (1, "NoneType"),
        (1, "NoneType"),
    ]


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


@pytest.mark.parametrize(
    ("function", "given", "more", "seen", "expected"),
    [
        pytest.param(
            Counter(),
            [(TWO,), (ONE, STATE), (ONE, STATE)],
            {},
            lambda reply: [
                float(o.tensor[0]) if o.tensor is not None else o for o in reply.outputs
            ],
            [4, Output(OPAQUE), 5, Output(OPAQUE), 5, Output(OPAQUE)],
            id="a step gets what an earlier one returned, and none of it is told",
        ),
        pytest.param(
            keeps,
            [(ONE,), (ONE, STATE)],
            {},
            lambda reply: [float(o.tensor) for o in reply.outputs[::2]],
            [1, 2],
            id="an output is told as it was before a later step changed it",
        ),
        pytest.param(
            lambda *arguments: ONE,
            [(ONE,), (ONE, STATE)],
            {},
            lambda reply: [read_misfit(o.kind) for o in reply.outputs],
            [(0, "tensor")] * 2 + [(0, "nothing")] * 2,
            id="no step follows one that returned another structure",
        ),
        pytest.param(
            Counter(),
            [(TWO,), (ONE, STATE)],
            {"cotangent": (None, None, torch.ones(2))},
            lambda reply: {name: g.tolist() for name, g in reply.gradients.items()},
            {"args.0": [2, 2], "then.0.args.0": [2]},
            id="gradients are those of all outputs that have a cotangent",
        ),
        pytest.param(
            adds,
            [(ONE,), (ONE, "again")],
            {},
            lambda reply: reply.mutated,
            ("then.0.args.0",),
            id="what a later step changes is told by its name",
        ),
        pytest.param(
            Counter(),
            [(torch.ones(7),), (ONE, STATE)],
            {"watch": True},
            lambda reply: reply.operations.made,
            (1, 2),
            id=(
                "a sequence is watched as one call: nothing that reading its outputs made is "
                "any larger"
            ),
        ),
    ],
)
def test_steps(function, given, more, seen, expected) -> None:
    arguments, *then = given
    call = Call("f", arguments, then=tuple(map(FollowUp, then)), returns=PAIR, **more)
    assert seen(execute({"f": function}, call, "")) == expected


class Doubles(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x if self.training else x


TURNS = (
    FollowUp((ONE,), training=True),
    FollowUp((ONE,)),
    FollowUp((), {"x": ONE}, training=False),
)


def test_a_step_puts_the_instance_in_a_mode_in_which_it_stays() -> None:
    reply = execute({"Doubles": Doubles}, Call(Build("Doubles"), (ONE,), then=TURNS), "")
    assert [float(output.tensor) for output in reply.outputs] == [1, 2, 2, 1]


def test_a_sequence_changes_the_mode_before_its_next_call() -> None:
    calls = (
        Implementation(LocalRunner({"Doubles": Doubles}))
        .module("Doubles")
        .in_training_mode()
        .sequence()
    )
    with pytest.raises(ValueError, match="first call"):
        calls.train()
    calls(ONE)
    calls.train(False)
    calls(ONE)
    calls(ONE)
    assert [float(answer.output) for answer in calls.ask()] == [2, 1, 1]


def test_a_call_with_steps_survives_the_wire_in_another_dtype() -> None:
    call = Call(
        "f", (ONE,), returns=PAIR, then=(*TURNS, FollowUp((ONE, STATE))), cotangent=(ONE, None)
    )
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
EXCEPTIONS = {
    "half a surrogate pair": r'raise ValueError("caf\udce9")',
    "bytes as a file system reads them": r'import os; raise ValueError(os.fsdecode(b"caf\xe9"))',
    "2,000 halves": r'raise ValueError("\ud800" * 2000)',
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
    "a traceback of a line that is none": (
        f"{TRACEBACK % '-5'}raise ValueError('x').with_traceback(tb)"
    ),
    "a traceback of a line beyond all": (
        f"{TRACEBACK % '2**31 - 1'}raise ValueError('x').with_traceback(tb)"
    ),
    "a cause that is its own": "e = ValueError('x')\ne.__cause__ = e.__context__ = e\nraise e",
}
OTHERS = {
    "a group": ('raise ExceptionGroup("caf\\udce9", [ValueError("x")])', "ExceptionGroup"),
    "a group of what is no Exception": (
        'raise BaseExceptionGroup("x", [SystemExit()])',
        "BaseExceptionGroup",
    ),
    "what is no Exception": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "a syntax error of its own": (
        "raise SyntaxError('x', ('a.py', -7, 10**30, 'text', 'odd', None))",
        "SyntaxError",
    ),
    "a generator that ends": ("raise GeneratorExit", "GeneratorExit"),
}


def raised_in(box: Box, body: str) -> Raised:
    """What `f()` raises; the same process answers another call after that."""
    source = f"def f():\n{textwrap.indent(body, '    ')}\ndef g(x): return x\n"
    raised, after = replies(box, LIMITS, source, Call("f"), Call("g", (X,)))
    assert after.outputs[0].tensor is not None
    assert raised.raised is not None
    return raised.raised


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in EXCEPTIONS.items()])
def test_a_refusal_stays_one_whatever_its_text_or_class(box, body):
    raised = raised_in(box, body)
    assert is_refusal(raised)
    assert explain(raised).startswith("raised ValueError")
    assert raised.message.encode() is not None


@pytest.mark.parametrize(
    ("body", "name"), [pytest.param(*row, id=name) for name, row in OTHERS.items()]
)
def test_any_other_exception_is_an_answer(box, body, name):
    assert raised_in(box, body).type == name


@pytest.mark.parametrize(
    ("load", "told"),
    [
        pytest.param(
            'raise ValueError("caf\\udce9")',
            [(r"caf\udce9", 1)],
            id="exceptions are told in the same way",
        ),
        pytest.param(
            Load("x = 1\ny = (\n", "a.ipynb", (1, 2)),
            [("'(' was never closed", 2)],
            id="no line of joined cells is named",
        ),
        pytest.param(
            r'print("caf\udce9", "\ud800")',
            [],
            id="what is printed costs nothing and can be written",
        ),
    ],
)
def test_while_importing(box, load, told):
    (reply,) = replies(box, LIMITS, load)
    assert (reply.raised, [(statement.message, statement.line) for statement in reply.stopped]) == (
        None,
        told,
    )


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
"""


def build(target: str, *report: str) -> Call:
    return Call(Build(target, report=report), (X,), cotangent=X)


def test_names_and_attributes_of_a_module_are_bounded_and_can_be_written(box):
    (reply,) = replies(box, LIMITS, MODULE, build("Wide", "flash", "size", "rate"))
    (facts,) = reply.modules
    assert reply.raised is None
    assert (
        set(facts.parameters) == {r"caf\udce9", "é" * NAME_LIMIT} == {*reply.gradients} - {"args.0"}
    )
    assert facts.attributes == {
        "flash": (r"yes\udce9" * 100)[:NAME_LIMIT],
        "size": "int",
        "rate": 1.0,
    }


def test_an_attribute_that_cannot_be_read_is_the_attempts_exception(box):
    reply, after = replies(box, LIMITS, MODULE, build("Computed", "head_dim"), build("Wide"))
    assert (reply.raised.type, reply.raised.message) == ("OSError", r"caf\udce9")
    assert after.raised is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        pytest.param("type('é' * 10_000, (), {})()", "é" * NAME_LIMIT, id="a long name"),
        pytest.param("Text('x')", "Text", id="a text of its own"),
        pytest.param("type(Text('E'), (), {})()", "E", id="a name of its own"),
    ],
)
def test_what_is_returned_in_place_of_a_tensor_is_named_by_its_type(box, value, kind):
    (reply,) = replies(box, LIMITS, f"{HOSTILE_STR}\ndef f(): return {value}\n", Call("f"))
    assert (reply.raised, reply.outputs[0].kind) == (None, kind)


def test_any_text_becomes_one_that_can_be_written_and_is_no_longer_than_agreed():
    letters = random.Random(1)
    for _ in range(2000):
        ranges = letters.choices([(128,), (0xD800, 0xE000), (0x110000,)], k=letters.randrange(40))
        text = plain("".join(chr(letters.randrange(*bounds)) for bounds in ranges), 30)
        assert type(text) is str
        assert len(text) <= 30
        text.encode()
