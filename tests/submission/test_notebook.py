"""A notebook's code cells as one Python source: what IPython would not run as Python is skipped."""

import ast
import json
from typing import Any

import pytest

from manyheads.submission.read import CELL_LIMIT, NotebookError, read_notebook, without_engine
from manyheads.submission.source_text import CODE_LIMIT
from tests.make import notebook


def names_of(source: str) -> dict[str, Any]:
    """What the source defines: it must be Python."""
    names: dict[str, Any] = {}
    exec(compile(source, "attempt", "exec"), names)
    del names["__builtins__"]
    return names


@pytest.mark.parametrize(("cells", "source"), [
    pytest.param([("markdown", "# Words"), ("code", "x = 1"), ("raw", "more"), ("code", "x += 1")], "x = 1\n\nx += 1\n", id="words and code"),
    pytest.param([("code", "x = 1\ny = 2")], "x = 1\ny = 2\n", id="one text"),
    pytest.param([("code", ["x = 1\n", "y = 2"])], "x = 1\ny = 2\n", id="a list of lines"),
    pytest.param([], "\n", id="nothing"),
])  # fmt: skip
def test_code_cells_are_joined_in_their_order_and_text_is_left_out(cells, source):
    text = json.dumps({"cells": [{"cell_type": kind, "source": text} for kind, text in cells]})
    assert read_notebook(text).source == source


@pytest.mark.parametrize(("cell", "defines"), [
    pytest.param("%matplotlib inline\nx = 1", {"x": 1}, id="a line magic"),
    pytest.param("%load_ext autoreload\n%autoreload 2\nx = 1", {"x": 1}, id="two line magics"),
    pytest.param("!pip install einops\nx = 1", {"x": 1}, id="a shell line"),
    pytest.param("!pip install \\\n    einops\nx = 1", {"x": 1}, id="a shell line that goes on in the next one"),
    pytest.param("?print\nx = 1\nprint??", {"x": 1}, id="questions before and after a name"),
    pytest.param("if True:\n    %time\nx = 1", {"x": 1}, id="a magic alone in a block"),
    pytest.param("files = !ls\nx = 1", {"files": None, "x": 1}, id="a shell line that is assigned"),
    pytest.param("where = %pwd\nx = 1", {"where": None, "x": 1}, id="a magic that is assigned"),
    pytest.param("%%time\nx = 1", {"x": 1}, id="a timed cell"),
    pytest.param("%%capture out\n%matplotlib inline\nx = 1", {"x": 1}, id="a line magic in a captured cell"),
    pytest.param("%%bash\nrm -rf / && x=1", {}, id="a shell cell"),
    pytest.param("%%bash --out files\nls | grep x", {}, id="a shell cell with options"),
    pytest.param("%%html\n<b>x = 1</b>", {}, id="a page"),
    pytest.param("%%writefile helper.py\nx = 1", {}, id="a cell that would write a file"),
    pytest.param("\n\n%%bash\nls | grep x", {}, id="a shell cell after blank lines"),
    pytest.param("x = (7\n% 4)", {"x": 3}, id="a line that begins with the operator %"),
    pytest.param("x = (7\n%4)", {"x": 3}, id="the operator % without a blank"),
    pytest.param("%pwd\nx = (7\n     % 4)", {"x": 3}, id="the operator % in a cell with a magic"),
    pytest.param("%pwd\nx = (7\n     != 4)", {"x": True}, id="the operator != in a cell with a magic"),
    pytest.param("x = '''\n%pwd\n!ls\n'''", {"x": "\n%pwd\n!ls\n"}, id="a text that looks like magics"),
    pytest.param("%pwd\n!ls \\\n  -l\nx = '''Why?\n%d of\n!all'''\ny = !ls\nx?", {"x": "Why?\n%d of\n!all", "y": None},
        id="such a text among magics"),
    pytest.param("%pwd\n" * 30 + "x = 1", {"x": 1}, id="many magics"),
    pytest.param("    x = 1\n    if x:\n        y = 2", {"x": 1, "y": 2}, id="a cell pasted from further in"),
    pytest.param("# is it right?\nx = 1  # is it?\n%pwd", {"x": 1}, id="remarks that ask"),
    pytest.param("", {}, id="an empty cell"),
    pytest.param("%%time", {}, id="nothing but a cell magic"),
])  # fmt: skip
def test_magics_are_skipped_and_python_is_kept(cell, defines):
    assert names_of(read_notebook(notebook(cell)).source) == defines


@pytest.mark.parametrize("cell", ["%matplotlib inline\n!ls\nx = 1\nraise ValueError", "%%time\n\n\nraise ValueError"])
def test_line_numbers_stay_what_the_student_sees(cell):
    tree = ast.parse(read_notebook(notebook(cell)).source)
    assert tree.body[-1].lineno == 4


def test_a_cell_that_is_no_python_spoils_the_source_where_the_student_left_it():
    with pytest.raises(SyntaxError) as error:
        ast.parse(read_notebook(notebook("x = 1", "def f(:\n    pass")).source)
    assert error.value.lineno == 3


NO_NOTEBOOKS = {
    "an empty file": "", "a script": "x = 1\n", "a list": "[]", "null": "null", "no cells": "{}", "a merge conflict": "<<<<<<< HEAD\n{}\n",
    "a notebook of ten years ago": '{"worksheets": [{"cells": []}]}', "cells that are null": '{"cells": null}',
    "cells that are a number": '{"cells": 3}', "cells that are a text": '{"cells": "code"}', "a cell that is a list": '{"cells": [[]]}',
    "a cell of no type": '{"cells": [{"source": "x"}]}', "a cell without a source": '{"cells": [{"cell_type": "code"}]}',
    "a source that is a number": notebook(3), "a source that is null": notebook(None), "a source that is a mapping": notebook({"a": 1}),
    "a file that was cut off": notebook("x = 1")[:-1], "brackets without end": "[" * 100_000,
    "a number of ten thousand digits": '{"cells": ' + "9" * 10_000 + "}", "half of a surrogate pair": notebook("x = '\ud800'"),
    "a NUL that is escaped": notebook("x = 1\0"),
}  # fmt: skip


@pytest.mark.parametrize("text", NO_NOTEBOOKS.values(), ids=NO_NOTEBOOKS)
def test_what_is_no_notebook_is_refused_in_one_sentence(text):
    with pytest.raises(NotebookError, match=r"^This is not a notebook that can be read: save it again from Jupyter\.$"):
        read_notebook(text)


def test_there_may_be_so_many_cells_and_no_more():
    assert read_notebook(notebook(*["x = 1"] * CELL_LIMIT)).source.count("x = 1") == CELL_LIMIT
    with pytest.raises(NotebookError, match=f"has {CELL_LIMIT + 1} cells; at most {CELL_LIMIT} are read"):
        read_notebook(notebook(*["x = 1"] * (CELL_LIMIT + 1)))


def test_more_code_than_anybody_writes_is_refused_before_it_is_parsed():
    """A megabyte of names and commas takes the parser a gigabyte."""
    line = "a," * 49 + "a\n"
    assert line in read_notebook(notebook(line * (CODE_LIMIT // 100 - 1), "%timeit x")).source
    with pytest.raises(NotebookError, match="has more than 200,000 characters of code"):
        read_notebook(notebook(line * (CODE_LIMIT // 200), line * (CODE_LIMIT // 200), "x"))


@pytest.mark.parametrize("cell", [
    "(" * 100_000,
    "x = " + "-" * 100_000 + "1",
    "x" + ".x" * 90_000,
    "%\n" * 100_000,
    "!\\\n" * 60_000,
    "'''" + "\\\n" * 90_000,
], ids=["brackets", "signs", "dots", "magics", "a magic that goes on", "a text that never ends"])  # fmt: skip
def test_a_hostile_cell_does_not_break_the_reader(cell):
    assert read_notebook(notebook(cell)).source.endswith("\n")


def test_remarks_however_long_do_not_keep_a_script_from_losing_its_visible_checks():
    picture = "# ![](data:image/png;base64," + "A" * CODE_LIMIT + ")\n"
    assert without_engine(picture + "import manyheads\nx = 1\n") == picture + "\nx = 1\n"
