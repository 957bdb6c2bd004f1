"""Text that an attempt chooses comes out of the box as plain characters, whatever it is: no text ends an attempt."""

import random
import textwrap

import pytest
import torch

from manyheads.box.level import Box
from manyheads.box.worker.answers import Raised
from manyheads.box.worker.limits import Limits
from manyheads.box.worker.messages import Build, Call, Load
from manyheads.box.worker.text import NAME_LIMIT, plain
from manyheads.checks.explain import explain, is_refusal
from tests.make import replies

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
    "a __str__ that exits": "class E(ValueError):\n    def __str__(self): raise SystemExit\nraise E",
    "a __str__ that recurses": "class E(ValueError):\n    def __str__(self): return str(self)\nraise E",
    "a text with methods of its own": f"{HOSTILE_STR}raise ValueError(Text('x'))",
    "a __str__ that returns such a text": f"{HOSTILE_STR}class E(ValueError):\n    __str__ = lambda self: Text('x')\nraise E",
    "a class with such a name": f"{HOSTILE_STR}raise type(Text('E'), (ValueError,), {{}})",
    "a class with a name of 10,000 characters": "raise type('é' * 10_000, (ValueError,), {})",
    "a class with 100 bases": "raise type('E', (*(type(f'B{i}', (ValueError,), {}) for i in range(100)),), {})",
    "a class that lies about itself": f"{ODD_CLASS}raise Odd",
    "a class whose attributes all raise": "class E(ValueError):\n    def __getattribute__(self, name): raise OSError\nraise E",
    "a traceback of a line that is none": f"{TRACEBACK % '-5'}raise ValueError('x').with_traceback(tb)",
    "a traceback of a line beyond all": f"{TRACEBACK % '2**31 - 1'}raise ValueError('x').with_traceback(tb)",
    "a cause that is its own": "e = ValueError('x')\ne.__cause__ = e.__context__ = e\nraise e",
}
OTHERS = {
    "a group": ('raise ExceptionGroup("caf\\udce9", [ValueError("x")])', "ExceptionGroup"),
    "a group of what is no Exception": ('raise BaseExceptionGroup("x", [SystemExit()])', "BaseExceptionGroup"),
    "what is no Exception": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "a syntax error of its own": ("raise SyntaxError('x', ('a.py', -7, 10**30, 'text', 'odd', None))", "SyntaxError"),
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


@pytest.mark.parametrize(("body", "name"), [pytest.param(*row, id=name) for name, row in OTHERS.items()])
def test_any_other_exception_is_an_answer(box, body, name):
    assert raised_in(box, body).type == name


def test_what_no_encoding_can_write_is_spelled_out(box):
    assert raised_in(box, EXCEPTIONS["half a surrogate pair"]).message == r"caf\udce9"


def test_exceptions_while_importing_are_told_in_the_same_way(box):
    (reply,) = replies(box, LIMITS, 'raise ValueError("caf\\udce9")')
    (raised,) = reply.stopped
    assert (raised.message, raised.line) == (r"caf\udce9", 1)


def test_what_python_says_of_a_text_names_no_line_of_joined_cells(box):
    (reply,) = replies(box, LIMITS, Load("x = 1\ny = (\n", "a.ipynb", (1, 2)))
    assert [(each.message, each.line) for each in reply.stopped] == [("'(' was never closed", 2)]


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
    assert set(facts.parameters) == {r"caf\udce9", "é" * NAME_LIMIT} == {*reply.gradients} - {"args.0"}
    assert facts.attributes == {"flash": (r"yes\udce9" * 100)[:NAME_LIMIT], "size": "int", "rate": 1.0}


def test_an_attribute_that_cannot_be_read_is_the_attempts_exception(box):
    reply, after = replies(box, LIMITS, MODULE, build("Computed", "head_dim"), build("Wide"))
    assert (reply.raised.type, reply.raised.message) == ("OSError", r"caf\udce9")
    assert after.raised is None


@pytest.mark.parametrize(("value", "kind"), [
    pytest.param("type('é' * 10_000, (), {})()", "é" * NAME_LIMIT, id="a long name"),
    pytest.param("Text('x')", "Text", id="a text of its own"),
    pytest.param("type(Text('E'), (), {})()", "E", id="a name of its own"),
])  # fmt: skip
def test_what_is_returned_in_place_of_a_tensor_is_named_by_its_type(box, value, kind):
    (reply,) = replies(box, LIMITS, f"{HOSTILE_STR}\ndef f(): return {value}\n", Call("f"))
    assert (reply.raised, reply.outputs[0].kind) == (None, kind)


def test_what_is_printed_costs_nothing_and_can_be_written(box):
    (reply,) = replies(box, LIMITS, r'print("caf\udce9", "\ud800")')
    assert (reply.raised, reply.stopped) == (None, ())


def test_any_text_becomes_one_that_can_be_written_and_is_no_longer_than_agreed():
    letters = random.Random(1)
    for _ in range(2000):
        ranges = letters.choices([(128,), (0xD800, 0xE000), (0x110000,)], k=letters.randrange(40))
        said = plain("".join(chr(letters.randrange(*each)) for each in ranges), 30)
        assert type(said) is str
        assert len(said) <= 30
        said.encode()
