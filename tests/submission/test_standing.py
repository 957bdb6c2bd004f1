"""Where a name stands that is not there once the file has run, and why it is not seen."""

import json

import pytest

from manyheads.result import Diagnosed, ExerciseResult, FunctionResult
from manyheads.submission import AttemptSource
from manyheads.submission.read import read_notebook
from manyheads.submission.source_text import CODE_LIMIT
from manyheads.submission.standing import told_of_file, where_it_is_written, where_it_stands

DEF = "def mean(x):\n    return x.mean()\n"
INDENTED = "    def mean(x):\n        return x.mean()\n"
TEXT = "that is text, not code. Take it out of the quotes."
GONE = "and is no function or class once all has run. Did something stop above it, or give its name to something else below?"
INSIDE = "on {} inside the `{}` on {}, which keeps it from being seen. Move it to the left margin."
STANDS = {
    "in a string": (f'x = 1\n"""\n{DEF}"""\n', f"stands inside the string that begins on line 2: {TEXT}"),
    "in a docstring": (f'def total(x):\n    """Not yet:\n{INDENTED}"""\n', f"stands inside the string that begins on line 2: {TEXT}"),
    "in a class": (f"class A:\n{INDENTED}", f"stands {INSIDE.format('line 2', 'class', 'line 1')}"),
    "in a function": (f"def total(x):\n    return x\n{INDENTED}", f"stands {INSIDE.format('line 3', 'function', 'line 1')}"),
    "below the main guard": (f'if __name__ == "__main__":\n{INDENTED}', f"stands {INSIDE.format('line 2', 'if', 'line 1')}"),
    "below except": (f"try:\n    pass\nexcept OSError:\n{INDENTED}", f"stands {INSIDE.format('line 4', 'try', 'line 1')}"),
    "in a case": (f"match 1:\n  case 2:\n{INDENTED}", f"stands {INSIDE.format('line 3', 'match', 'line 1')}"),
    "commented out": ("x = 1\n    #def mean(x):\n", "is commented out on line 2: take the # away, there and on the lines below."),
    "deleted": (f"{DEF}del mean\n", f"stands on line 1, {GONE}"),
    "overwritten": (f"{DEF}mean = None\n", f"stands on line 1, {GONE}"),
    "above what stopped": (f"1 / 0\n{DEF}", f"stands on line 2, {GONE}"),
    "nowhere": ("def total(x):\n    return x\n", ""),
    "in a text that is too long": (f"class A:\n{INDENTED}{'x;' * CODE_LIMIT}", ""),
    "in words": ('"""The mean, of which def is short for definition."""\n# define mean here\n', ""),
    "under a longer name": ('"""\ndef means(x):\n"""\nclass A:\n    def my_mean(x): pass\n', ""),
    "in a call's argument": ("def total(mean):\n    mean = mean + 1\n    return mean\n", ""),
}  # fmt: skip


@pytest.mark.parametrize(("source", "says"), STANDS.values(), ids=STANDS)
def test_a_name_stands(source, says):
    assert where_it_stands(AttemptSource("a.py", source), "mean") == says


IN_CELLS = {
    "that is no Python": (["x = 1", f"x = (\n{DEF}"], "stands in code cell 2, which Python cannot read. Mend that cell first."),
    "that stopped": (["x = 1", f"1 / 0\n{DEF}"], f"stands on line 2 of code cell 2, {GONE}"),
    "inside a class, beside a broken cell": (["x = (", f"x = 1\nclass A:\n{INDENTED}"], f"stands {INSIDE.format('line 3 of code cell 2', 'class', 'line 2 of code cell 2')}"),
    "in a string, beside a broken cell": (["x = (", f"x = 1\n'''\n{DEF}'''"], f"stands inside the string that begins on line 2 of code cell 2: {TEXT}"),
    "nowhere": (["x = 1"], ""),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "says"), IN_CELLS.values(), ids=IN_CELLS)
def test_a_name_stands_in_a_cell(cells, says):
    read = read_notebook(json.dumps({"cells": [{"cell_type": "code", "source": text} for text in cells]}))
    assert where_it_stands(AttemptSource("a.ipynb", read.source, cells=read.cells), "mean") == says


STUB = "def mean(x):\n    raise NotImplementedError()\n"
WRITTEN = {
    "above the stub": (f"{DEF}\n{STUB}", "what is written on line 1 is not seen, for the stub on line 4 counts. Write it in the stub's place"),
    "in a class": (f"{STUB}class A:\n{INDENTED}", "what is written on line 4 is not seen, for the stub on line 1 counts. Write it in the stub's place"),
    "nowhere": (f"{STUB}\n{STUB}", ""),
    "alone": (STUB, ""),
}  # fmt: skip


@pytest.mark.parametrize(("source", "says"), WRITTEN.values(), ids=WRITTEN)
def test_what_is_written_beside_a_stub(source, says):
    assert where_it_is_written(AttemptSource("a.py", source), "mean") == says


def test_a_name_that_is_written_rightly_is_not_said_to_differ():
    interface = Diagnosed(id="interface", title="A name differs.", hint="Letter by letter?", function="mean")
    missing = tuple(FunctionResult(name=name, state="undefined") for name in ("mean", "total"))
    result = ExerciseResult(id="e", score=0, max_score=1, checks=(), functions=missing, diagnosis=(interface,))
    told = told_of_file(result, AttemptSource("a.py", f"class A:\n{INDENTED}"))
    says = f"mean stands {INSIDE.format('line 2', 'class', 'line 1')}"
    assert [each.evidence for each in told.functions] == [says, ""]
    assert (told.diagnosis[0].title, told.diagnosis[0].hint) == ("mean is not there once the file has run.", says)
    elsewhere = told_of_file(result, AttemptSource("a.py", "x = 1\n"))
    assert elsewhere.diagnosis == (interface,)


def test_in_an_empty_file_nothing_is_renamed():
    functions = (FunctionResult(name="attend", state="undefined"),)
    result = ExerciseResult(id="one", score=0, max_score=1, checks=(), functions=functions)
    for text, state in ("", "unwritten"), ("\n# later\n", "unwritten"), ("import torch\n", "undefined"):
        assert [f.state for f in told_of_file(result, AttemptSource("a.py", text)).functions] == [state]
