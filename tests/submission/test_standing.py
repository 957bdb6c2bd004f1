"""Where a name stands that is not there once the file has run, and why it is not seen."""

from __future__ import annotations

import json

import pytest

from manyheads.result import Diagnosed, ExerciseResult, FunctionResult
from manyheads.submission import AttemptSource
from manyheads.submission.notebook import NAMES, read_notebook
from manyheads.submission.source_text import CODE_LIMIT
from manyheads.submission.standing import told_of_file, where_it_is_written, where_it_stands

DEF = "def mean(x):\n    return x.mean()\n"
INDENTED = "    def mean(x):\n        return x.mean()\n"
MARGIN = "Move it to the left margin."
TEXT = "that is text, not code."
GONE = "and is not there once all has run. Did something stop above it, or take it away below?"
STANDS = {
    "in a string": (f'x = 1\n"""\n{DEF}"""\n', f"stands inside the string that begins on line 2: {TEXT} Take it out of the quotes."),
    "in a string of one line": ("x = 'def mean(x): return x'\n", f"stands inside the string that begins on line 1: {TEXT} Take it out of the quotes."),
    "in a docstring": (f'def total(x):\n    """Not yet:\n{INDENTED}"""\n', f"stands inside the string that begins on line 2: {TEXT} Take it out of the quotes."),
    "in a class": (f"class A:\n{INDENTED}", f"stands on line 2 inside the class on line 1, where it is a method. {MARGIN}"),
    "in a function": (f"def total(x):\n    return x\n{INDENTED}", f"stands on line 3 inside the function on line 1, and nothing outside of that knows it. {MARGIN}"),
    "in a class of a function": (f"def f():\n    class A:\n{INDENTED}".replace("    def", "        def").replace("        return", "            return"), f"stands on line 3 inside the class on line 2, where it is a method. {MARGIN}"),
    "below the main guard": (f'if __name__ == "__main__":\n{INDENTED}', f'stands on line 2 below `if __name__ == "__main__":` on line 1, which runs only where you run the file yourself. {MARGIN[:-1]}, above that.'),
    "deep below the main guard": (f'if "__main__" == __name__:\n  if True:\n{INDENTED}', f'stands on line 3 below `if __name__ == "__main__":` on line 1, which runs only where you run the file yourself. {MARGIN[:-1]}, above that.'),
    "below if False": (f"if False:\n{INDENTED}", f"stands on line 2 inside the `if` on line 1, which did not come to it. {MARGIN}"),
    "below else": (f"if True:\n    pass\nelse:\n{INDENTED}", f"stands on line 4 inside the `if` on line 1, which did not come to it. {MARGIN}"),
    "in a try that failed": (f"try:\n    1 / 0\n{INDENTED}except ArithmeticError:\n    pass\n", f"stands on line 3 inside the `try` on line 1, which did not come to it. {MARGIN}"),
    "below except": (f"try:\n    pass\nexcept OSError:\n{INDENTED}", f"stands on line 4 inside the `try` on line 1, which did not come to it. {MARGIN}"),
    "in a loop over nothing": (f"for i in []:\n{INDENTED}", f"stands on line 2 inside the `for` on line 1, which did not come to it. {MARGIN}"),
    "in a case": (f"match 1:\n  case 2:\n{INDENTED}", f"stands on line 3 inside the `match` on line 1, which did not come to it. {MARGIN}"),
    "commented out": ("".join(f"# {line}\n" for line in DEF.splitlines()), "is commented out on line 1: take the # away, there and on the lines below."),
    "commented out without a blank": ("x = 1\n    #def mean(x):\n", "is commented out on line 2: take the # away, there and on the lines below."),
    "deleted": (f"{DEF}del mean\n", "stands on line 1, and is deleted on line 3. Take the `del` out."),
    "overwritten": (f"{DEF}mean = None\n", "stands on line 1, and line 3 gives its name to something else. Use another name there."),
    "overwritten by its own answer": (f"{DEF}mean, y = mean(x), 1\n", "stands on line 1, and line 3 gives its name to something else. Use another name there."),
    "overwritten by a loop": (f"{DEF}for mean in (1, 2):\n    pass\n", "stands on line 1, and line 3 gives its name to something else. Use another name there."),
    "overwritten in an if": (f"{DEF}if True:\n    mean = 1\n", "stands on line 1, and line 4 gives its name to something else. Use another name there."),
    "beside an attribute of it": (f"{DEF}mean.calls = 0\n", f"stands on line 1, {GONE}"),
    "a number": ("mean = 3\n", "is no function or class: line 1 makes something else of that name."),
    "imported from the student's other file": ("from helpers import mean\n", "is imported on line 1, and no function or class comes from there where attempts run. An attempt is one file: write it here."),
    "imported under that name": ("import numpy as mean\n", "is imported on line 1, and no function or class comes from there where attempts run. An attempt is one file: write it here."),
    "decorated": (f"def wrap(f):\n    print(f)\n@wrap\n{DEF}", "stands on line 4, and what its decorator makes of it is no function or class. Does the decorator return one?"),
    "above what stopped": (f"1 / 0\n{DEF}", f"stands on line 2, {GONE}"),
    "nowhere": ("def total(x):\n    return x\n", ""),
    "in a text that is too long": (f"class A:\n{INDENTED}{'x;' * CODE_LIMIT}", ""),
    "in words": ('"""The mean, of which def is short for definition."""\n# define mean here\n', ""),
    "under a longer name": ('"""\ndef means(x):\n"""\nclass A:\n    def my_mean(x): pass\n', ""),
    "in a call's argument": ("def total(mean):\n    mean = mean + 1\n    return mean\n", ""),
}  # fmt: skip


@pytest.mark.parametrize(("source", "says"), STANDS.values(), ids=STANDS)
def test_a_name_stands(source: str, says: str) -> None:
    assert where_it_stands(AttemptSource("a.py", source), "mean") == says


def notebook(*cells: tuple[object, object] | dict[str, object]) -> AttemptSource:
    """A notebook of these cells, each a type with its text."""
    listed = [c if isinstance(c, dict) else {"cell_type": c[0], "source": c[1], "metadata": {}} for c in cells]
    read = read_notebook(json.dumps({"cells": listed}))
    return AttemptSource("a.ipynb", read.source, cells=read.cells, aside=read.aside)


CHECK = {"cell_type": "code", "source": DEF, "metadata": {"manyheads": {"visible": True}}}
IN_CELLS = {
    "of Markdown": ([("code", "x = 1"), ("markdown", DEF)], f"stands in a Markdown cell, below code cell 1: {TEXT} Make it a code cell."),
    "of Markdown, in a list of lines": ([("markdown", DEF.splitlines(keepends=True))], f"stands in a Markdown cell, above all code cells: {TEXT} Make it a code cell."),
    "that is raw": ([("code", "x = 1"), ("code", ""), ("code", "y = 1"), ("raw", DEF)], f"stands in a raw cell, below code cell 2: {TEXT} Make it a code cell."),
    "written to a file": ([("code", f"%%writefile mean.py\n{DEF}")], "stands in the cell that begins with %%writefile, above all code cells, which is not run as Python. Take that first line out."),
    "for the shell": ([("code", "x = 1"), ("code", f"\n%%script python\n{DEF}")], "stands in the cell that begins with %%script, below code cell 1, which is not run as Python. Take that first line out."),
    "of HTML": ([("code", f"%%html\n{DEF}")], "stands in the cell that begins with %%html, above all code cells, which is not run as Python. Take that first line out."),
    "of a visible check": ([("code", "x = 1"), CHECK], "stands in the cell of a visible check, below code cell 1, which is no part of your answer. Write it in a cell of its own."),
    "that is no Python": ([("code", "x = 1"), ("code", f"x = (\n{DEF}")], "stands in code cell 2, which Python cannot read. Mend that cell first."),
    "that stopped": ([("code", "x = 1"), ("code", f"1 / 0\n{DEF}")], f"stands on line 2 of code cell 2, {GONE}"),
    "inside a class, beside a broken cell": ([("code", "x = ("), ("code", f"x = 1\nclass A:\n{INDENTED}")], f"stands on line 3 of code cell 2 inside the class on line 2 of code cell 2, where it is a method. {MARGIN}"),
    "in a string, beside a broken cell": ([("code", "x = ("), ("code", f"x = 1\n'''\n{DEF}'''")], f"stands inside the string that begins on line 2 of code cell 2: {TEXT} Take it out of the quotes."),
    "that is timed": ([("code", f"%%time\n{DEF}del mean")], "stands on line 2 of code cell 1, and is deleted on line 4 of code cell 1. Take the `del` out."),
    "nowhere": ([("code", "x = 1"), ("markdown", "The mean: def is short for definition.")], ""),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "says"), IN_CELLS.values(), ids=IN_CELLS)
def test_a_name_stands_in_a_cell(cells: list[tuple[str, object]], says: str) -> None:
    assert where_it_stands(notebook(*cells), "mean") == says


def test_a_cell_that_is_no_code_may_hold_anything_and_so_many_names_are_kept() -> None:
    odd = [("raw", [None, {}]), ("markdown", 7), (7, "\ud800"), (["code"], "x"), {"cell_type": "markdown"}]
    assert [each.names for each in notebook(("code", "x = 1"), *odd, ("markdown", DEF)).aside] == [("mean",)]
    many = "".join(f"def f{i}(): pass\n" for i in range(NAMES))
    aside = notebook(("markdown", many), ("markdown", many), ("raw", f"class {'a' * 10_000}:")).aside
    assert sum(len(each.names) for each in aside) == NAMES


STUB = "def mean(x):\n    raise NotImplementedError()\n"
WRITTEN = {
    "above the stub": (f"{DEF}\n{STUB}", "what is written on line 1 is replaced by the stub on line 4, for the last one counts. Delete the stub"),
    "in a class": (f"{STUB}class A:\n{INDENTED}", "the stub on line 1 counts, and what is written on line 4 inside the class on line 3 is not seen. Write it in the stub's place"),
    "below the main guard": (f'{STUB}if __name__ == "__main__":\n{INDENTED}', "the stub on line 1 counts, and what is written on line 4 inside the if on line 3 is not seen. Write it in the stub's place"),
    "nowhere": (f"{STUB}\n{STUB}", ""),
    "alone": (STUB, ""),
}  # fmt: skip


@pytest.mark.parametrize(("source", "says"), WRITTEN.values(), ids=WRITTEN)
def test_what_is_written_beside_a_stub(source: str, says: str) -> None:
    assert where_it_is_written(AttemptSource("a.py", source), "mean") == says


def test_a_name_that_is_written_rightly_is_not_said_to_differ() -> None:
    interface = Diagnosed(id="interface", title="A name differs.", hint="Letter by letter?", function="mean")
    missing = tuple(FunctionResult(name=name, state="undefined") for name in ("mean", "total"))
    result = ExerciseResult(id="e", score=0, max_score=1, checks=(), functions=missing, diagnosis=(interface,))
    told = told_of_file(result, AttemptSource("a.py", f"class A:\n{INDENTED}"))
    says = f"mean stands on line 2 inside the class on line 1, where it is a method. {MARGIN}"
    assert [each.evidence for each in told.functions] == [says, ""]
    assert (told.diagnosis[0].title, told.diagnosis[0].hint) == ("mean is not there once the file has run.", says)
    elsewhere = told_of_file(result, AttemptSource("a.py", "x = 1\n"))
    assert elsewhere.diagnosis == (interface,)


@pytest.mark.parametrize(
    ("text", "state"), [("", "unwritten"), ("\n# later\n", "unwritten"), ("import torch\n", "undefined")]
)
def test_in_an_empty_file_nothing_is_renamed(text: str, state: str) -> None:
    functions = (FunctionResult(name="attend", state="undefined"),)
    result = ExerciseResult(id="one", score=0, max_score=1, checks=(), functions=functions)
    assert [f.state for f in told_of_file(result, AttemptSource("a.py", text)).functions] == [state]
