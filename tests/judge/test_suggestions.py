"""Suggestions about exceptions: each example really raises, and needs a row of the table."""

import math
import time
from collections import deque
from itertools import product

import pytest
import torch
from torch import nn

from manyheads.box.worker.answer_call import raised_by
from manyheads.box.worker.messages import Raised
from manyheads.judge import exception_advice
from manyheads.judge.exception_advice import MAX_NAME, suggest
from manyheads.submission import Source
from tests.make import cases, read_table

GLOBALS = {
    "torch": torch,
    "math": math,
    "nothing": None,
    "d": 12,
    "x": torch.randn(2, 5, 12),
    "q": torch.randn(2, 9, 4),
    "k": torch.randn(2, 13, 4),
    "s": torch.randn(2, 5, 5),
    "m": torch.ones(5, 5).tril(),
    "mask": torch.ones(5, 5).tril().bool(),
    "layer": nn.Linear(7, 3),
    "w": nn.Parameter(torch.ones(3, 3)),
    "heads": nn.ModuleList([nn.Linear(12, 3)]),
}
TABLE = read_table("judge/suggestions.yaml")


def source_of(text):
    """Return the text as the source of an attempt."""
    return Source("attempt.py", text)


def exception_of_text(text):
    """Run a file and its function f. Return the exception that one of them raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT012
        namespace = dict(GLOBALS)
        exec(compile(text, "attempt.py", "exec"), namespace)
        namespace["f"]()
    return raised_by(caught.value, "call", "attempt.py")


def function_with_lines(lines):
    """Return the text of a function f with these lines; it returns an expression at the end."""
    *earlier_lines, last = lines.split("\n")
    last = last if last.startswith(("for", "if")) or "=" in last.split("(")[0] else f"return {last}"
    return "\n    ".join(["def f(x=x, s=s, m=m, w=w):", *earlier_lines, last])


ROWS = [
    (suggestion, function_with_lines(lines))
    for suggestion, examples in TABLE["lines"].items()
    for lines in examples
]
ROWS += [(suggestion, text) for suggestion, examples in TABLE["files"].items() for text in examples]


@pytest.mark.parametrize(
    ("suggestion", "text"), ROWS, ids=[f"{suggestion}: {text[-40:]}" for suggestion, text in ROWS]
)
def test_an_exception_gets_its_suggestion(suggestion, text):
    assert suggestion in suggest(source_of(text), exception_of_text(text))


@cases("text", TABLE["nothing"])
def test_other_exceptions_get_no_suggestion(text):
    assert suggest(source_of(text), exception_of_text(text)) == ""


def test_every_row_of_the_table_is_needed(monkeypatch):
    full_table = exception_advice.table()
    examples = deque(
        (suggestion, source_of(text), exception_of_text(text)) for suggestion, text in ROWS
    )
    for row in full_table:
        rest = {entry: full_table[entry] for entry in full_table if entry is not row}
        monkeypatch.setattr(exception_advice, "table", lambda rest=rest: rest)
        for _ in ROWS:
            suggestion, source, error = examples[0]
            if suggestion not in suggest(source, error):
                break
            examples.rotate(-1)  # the examples of the next row are near
        else:
            pytest.fail(row.pattern)


def missing_attribute(name, line):
    """Return the exception about a tensor without an attribute of this name."""
    return Raised("AttributeError", (), f"'Tensor' object has no attribute '{name}'", "call", line)


def test_there_is_no_suggestion_without_the_line_that_raised():
    source = source_of("def f(q, k):\n    k = k.trasnpose(0, 1)\n    return q @ k\n")
    for line in (None, 3, 9):
        assert suggest(source, missing_attribute("trasnpose", line)) == ""


def test_only_names_on_the_line_that_raised_are_looked_up():
    """An attempt may raise any message, and could reveal a hidden input in it."""
    source = source_of("def f(): g()\n")
    for word in ("arange", "softmaxx", "secret_0123", "x" * 10_000):
        undefined = Raised("NameError", (), f"name '{word}' is not defined", "call", 1)
        assert suggest(source, missing_attribute(word, 1)) == ""
        assert suggest(source, undefined) == ""
    longer = source_of(f"def f(): x.{'x' * MAX_NAME}xe\n")
    assert suggest(longer, missing_attribute("x" * MAX_NAME + "x", 1)) == ""


TYPES = ("RuntimeError", "TypeError", "ValueError", "IndexError")
PREFIXES = (
    "",
    "The size of tensor a ",
    "Boolean value of Tensor ",
    "mat1 and mat2 sh",
    "only integers, ",
)
REPEATED = (
    "a| |'|x - |@ k|.T|s/x.sum(|'tuple' and |'NoneType' self.m|\n|\nm = x.max(|[|self.m = |"
    "register_buffer((|B, "
).split("|")


@pytest.mark.parametrize("repeated", REPEATED)
def test_a_long_text_and_message_take_little_time(repeated):
    text = f'def f(x):\n    """{repeated * 2000}\n{repeated * 9000}\n{repeated * 9000}"""\n'
    source, line = source_of(text), text.count("\n") - 1
    started = time.process_time()
    for type_, prefix in product(TYPES, PREFIXES):
        message = f"{prefix}{repeated * 2000}"
        suggest(source, Raised(type_, (type_,), message, "call", line))
    assert time.process_time() - started < 4


NONE, WORD, A = "'NoneType' object is not", "x" * 13_000, ", ".join(f"a{n}" for n in range(1000))
GIVEN_NONE = (
    f"def f({A.replace(',', '=None,')}=None):\n" + f" if ({A}): pass\n" * 26 + f" return ({A})"
)
NEAR = "\n".join(f"self.{n * 40503 % 2**32:036b} = 1" for n in range(4000)).translate(
    {48: "a", 49: "b"}
)
BOUNDS = {
    "arguments": (GIVEN_NONE, 28, NONE),
    "depth": (f"def f(a=None):\n    if a{'.a' * 900}:\n        return a.b\n", 3, NONE),
    "near": (f"{NEAR}\ng.{'ba' * 18}", 4001, f"'A' object has no attribute '{'ba' * 18}'"),
    "return": (f"def {WORD}():\n    x = 1\nb = {WORD}().T", 3, NONE),
    "given": (f"def f({WORD}=None):\n    return ~{WORD}", 2, NONE),
    "called": (f"def {WORD}():\n    return 1\ny = {WORD}.T", 3, "'function' object is not"),
}


@cases("text, line, message", BOUNDS)
def test_a_suggestion_about_a_long_file_is_short_and_takes_little_time(text, line, message):
    source, error = source_of(text), Raised("AttributeError", (), message, "call", line)
    started = time.process_time()
    assert max(len(suggest(source, error)) for _ in range(9)) < 200
    assert time.process_time() - started < 2
