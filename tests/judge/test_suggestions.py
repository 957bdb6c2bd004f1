"""The usual cure of an exception: each snippet really raises it, and without its row the table is
silent or says another.
"""

import math
import time
from pathlib import Path

import pytest
import torch
import yaml
from torch import nn

from manyheads.box.worker.answer_call import raised_by
from manyheads.box.worker.messages import Raised
from manyheads.judge import exception_advice
from manyheads.judge.exception_advice import MAX_NAME, suggest
from manyheads.submission import Source

GIVEN = {
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
TABLE = yaml.safe_load(Path(__file__).with_name("suggestions.yaml").read_text(encoding="utf-8"))


def source_of(text: str) -> Source:
    return Source("attempt.py", text)


def raised_error(text: str) -> Raised:
    """What the file raises, or its f."""
    with pytest.raises(Exception) as caught:  # noqa: PT012
        names = dict(GIVEN)
        exec(compile(text, "attempt.py", "exec"), names)
        names["f"]()
    return raised_by(caught.value, "call", "attempt.py")


def of_lines(lines: str) -> str:
    *earlier_lines, last = lines.split("\n")
    last = last if last.startswith(("for", "if")) or "=" in last.split("(")[0] else f"return {last}"
    return "\n    ".join(["def f(x=x, s=s, m=m, w=w):", *earlier_lines, last])


ROWS = [
    (suggestion, of_lines(lines))
    for suggestion, examples in TABLE["lines"].items()
    for lines in examples
]
ROWS += [(suggestion, text) for suggestion, examples in TABLE["files"].items() for text in examples]


@pytest.mark.parametrize(
    ("said", "text"), ROWS, ids=[f"{suggestion}: {text[-40:]}" for suggestion, text in ROWS]
)
def test_what_is_raised_has_its_usual_cure(said: str, text: str) -> None:
    assert said in suggest(source_of(text), raised_error(text))


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=name) for name, text in TABLE["nothing"].items()]
)
def test_of_what_is_only_like_it_nothing_is_said(text: str) -> None:
    assert suggest(source_of(text), raised_error(text)) == ""


def test_every_row_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    full_table = exception_advice.table()
    cases = [(suggestion, source_of(text), raised_error(text)) for suggestion, text in ROWS]
    for row in full_table:
        monkeypatch.setattr(
            exception_advice,
            "table",
            lambda row=row: {entry: full_table[entry] for entry in full_table if entry is not row},
        )
        assert any(
            suggestion not in suggest(source, error) for suggestion, source, error in cases
        ), row.pattern


def lacks(name: str, line: int | None) -> Raised:
    return Raised("AttributeError", (), f"'Tensor' object has no attribute '{name}'", "call", line)


def test_another_line_or_none_shows_nothing() -> None:
    source = source_of("def f(q, k):\n    k = k.trasnpose(0, 1)\n    return q @ k\n")
    for line in (None, 3, 9):
        assert suggest(source, lacks("trasnpose", line)) == ""


def test_an_attempt_does_not_choose_the_word() -> None:
    """It may raise what it likes: only a name that stands on the line is looked up, or repeated."""
    source = source_of("def f(): g()\n")
    for word in ("arange", "softmaxx", "secret_0123", "x" * 10_000):
        undefined = Raised("NameError", (), f"name '{word}' is not defined", "call", 1)
        assert suggest(source, lacks(word, 1)) == ""
        assert suggest(source, undefined) == ""
    longer = source_of(f"def f(): x.{'x' * MAX_NAME}xe\n")
    assert suggest(longer, lacks("x" * MAX_NAME + "x", 1)) == ""


LONG = [
    "a",
    " ",
    "'",
    "x - ",
    "@ k",
    ".T",
    "s/x.sum(",
    "'tuple' and ",
    "'NoneType' self.m",
    "\n",
    "\nm = x.max(",
    "[",
]
LONG += ["self.m = ", "register_buffer((", "B, "]


@pytest.mark.parametrize("repeated", LONG)
def test_a_long_text_takes_no_long_time(repeated: str) -> None:
    text = f'def f(x):\n    """{repeated * 2000}\n{repeated * 9000}\n{repeated * 9000}"""\n'
    source, line = source_of(text), text.count("\n") - 1
    started = time.process_time()
    for type_ in ("RuntimeError", "TypeError", "ValueError", "IndexError"):
        for prefix in (
            "",
            "The size of tensor a ",
            "Boolean value of Tensor ",
            "mat1 and mat2 sh",
            "only integers, ",
        ):
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


@pytest.mark.parametrize(("text", "line", "said"), BOUNDS.values(), ids=BOUNDS)
def test_a_file_within_its_limit_takes_no_long_time_or_sentence(
    text: str, line: int, said: str
) -> None:
    source, error = source_of(text), Raised("AttributeError", (), said, "call", line)
    started = time.process_time()
    assert max(len(suggest(source, error)) for _ in range(9)) < 200
    assert time.process_time() - started < 2
