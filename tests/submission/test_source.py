"""Reading an attempt's file: scripts, notebooks, unwritten stubs, and where a name is defined."""

import ast
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manyheads.course import load_course
from manyheads.submission import Source, read_attempt, size_limit
from manyheads.submission import source as source_text
from manyheads.submission.read import (
    LINE_LIMIT,
    NotebookError,
    read_exercise,
    read_notebook,
    without_engine,
)
from manyheads.submission.source import (
    CODE_LIMIT,
    LeftOver,
    location_of,
    where_it_is_written,
    with_fields,
)
from tests.make import REPOSITORY, cases, notebook

STEM = "01_running_mean"
STUB = "def running_mean(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()\n"
RIGHT = "def running_mean(x):\n    return x.mean()\n"
SIZE_LIMIT_KIB = 16


def read_source(folder: Path, stub: str | None = STUB) -> Source:
    """Read the attempt in this folder. stub: the exercise as released, None if not known."""
    return read_attempt(
        folder, STEM, None if stub is None else Source("", stub).code_digest, SIZE_LIMIT_KIB
    )


def test_a_missing_file_is_marked_as_missing(tmp_path):
    assert read_source(tmp_path) == Source(f"{STEM}.py", missing=True)


SCRIPTS = {
    "plain text": (b"x = 1\n", "x = 1\n"),
    "an empty file": (b"", ""),
    "a byte order mark is dropped": (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
    "Windows line ends": (b"x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
    "old Mac line ends": (b"x = 1\ry = 2\r", "x = 1\ny = 2\n"),
    "letters beyond ASCII": ("é = '→'\n".encode(), "é = '→'\n"),
    "the encoding of a coding line": (b"# coding: latin-1\n# \xe9\n", "# coding: latin-1\n# é\n"),
    "the encoding of a coding line on the second line": (
        b"#!/bin/py\n# vim: set fileencoding=cp1252 :\nx = '\x93'\n",
        "#!/bin/py\n# vim: set fileencoding=cp1252 :\nx = '“'\n",
    ),
    "letters of several bytes": ("# coding: gbk\n# 头\n".encode("gbk"), "# coding: gbk\n# 头\n"),
    "UTF-8 with a coding line of another encoding": (
        "# coding: ascii\n# é\n".encode(),
        "# coding: ascii\n# é\n",
    ),
    "a file of exactly the largest size": (
        b"x" * SIZE_LIMIT_KIB * 1024,
        "x" * SIZE_LIMIT_KIB * 1024,
    ),
    "git's conflict marks in a docstring": (
        b'"""Solved:\n<<<<<<< HEAD\n=======\n>>>>>>> main\n"""\nx = 1\n',
        '"""Solved:\n<<<<<<< HEAD\n=======\n>>>>>>> main\n"""\nx = 1\n',
    ),
    "a fence in a docstring": (
        b'def f():\n    """\n    ```\n    f()\n    ```\n    """\n',
        'def f():\n    """\n    ```\n    f()\n    ```\n    """\n',
    ),
    "a fence in a docstring beside a mistake": (
        b'"""\n```\n"""\ndef f(:\n',
        '"""\n```\n"""\ndef f(:\n',
    ),
    "magics and shell commands of IPython": (
        b'!pip install "x[y" \\\n  -q\n%matplotlib inline\n%%time\nfiles = !ls\nx = (7\n%4)\nx?\n',
        "pass\n\npass\npass\nfiles = None\nx = (7\n%4)\npass\n",
    ),
    "a shell command in a string": (b"x = '''\n!ls\n'''\n!ls\n", "x = '''\n!ls\n'''\npass\n"),
    "a question mark that asks for no help": (b"return x?\n", "return x?\n"),
}


@cases("data, source", SCRIPTS)
def test_a_script_is_decoded_and_normalised(tmp_path, data, source):
    (tmp_path / f"{STEM}.py").write_bytes(data)
    assert read_source(tmp_path) == Source(f"{STEM}.py", source)


def test_a_script_exported_from_a_notebook_has_the_same_digest(tmp_path):
    text = f"!pip install einops\n%load_ext autoreload\n{RIGHT}"
    (tmp_path / f"{STEM}.ipynb").write_text(notebook(text))
    from_notebook = read_source(tmp_path)
    (tmp_path / f"{STEM}.ipynb").unlink()
    (tmp_path / f"{STEM}.py").write_text(text)
    expected = Source("", f"pass\npass\n{RIGHT}").code_digest
    assert read_source(tmp_path).code_digest == from_notebook.code_digest == expected


WEB_PAGE = (
    '<!DOCTYPE html>\n<html lang="en">\n<head><title>01_running_mean.py at main</title></head>\n'
)
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab\nsize 12345\n"
RTF = (
    "{\\rtf1\\ansi\\ansicpg1252\\cocoartf2709\n{\\fonttbl\\f0 Menlo-Regular;}\n"
    "\\f0 def running_mean(x):\\\n    return x\\\n}\n"
)
FENCE = r"^01_running_mean\.py has a code fence on line {}, which is Markdown: keep the code alone"
NOT_PYTHON = {
    "a web page": (
        ".py",
        WEB_PAGE,
        "is a web page, saved in place of the file: download the file itself",
    ),
    "a web page for a notebook": (
        ".ipynb",
        f"\n{WEB_PAGE}",
        "is a web page, saved in place of the file",
    ),
    "a web page that is too large": (
        ".py",
        WEB_PAGE + "<p>" * SIZE_LIMIT_KIB * 1024,
        "is a web page, saved in place of the file",
    ),
    "a code fence": (".py", f"```python\n{RIGHT}```\n", FENCE.format(1)),
    "a code fence below words": (
        ".py",
        f"Sure! Here's the mean:\n\n```python\n{RIGHT}```\n",
        FENCE.format(3),
    ),
    "a notebook named .py": (
        ".py",
        notebook(RIGHT),
        r"^01_running_mean\.py is a notebook: rename it to 01_running_mean\.ipynb\.$",
    ),
    "a notebook named .py, with pictures": (
        ".py",
        json.dumps(json.loads(notebook(RIGHT)), indent=1) + " " * SIZE_LIMIT_KIB * 1024,
        "is a notebook: rename it",
    ),
    "a script named .ipynb": (
        ".ipynb",
        f"import torch\n\n\n{RIGHT}",
        r"^01_running_mean\.ipynb is a script: rename it to 01_running_mean\.py\.$",
    ),
    "a script that is no Python, named .ipynb": (
        ".ipynb",
        "!ls\n" + RIGHT.replace(":", ""),
        "is a script: rename it",
    ),
    "a document of a word processor": (
        ".py",
        RTF,
        r"^01_running_mean\.py is a document with fonts and sizes \(RTF\).*: save it as plain text",
    ),
    "a document in place of a notebook": (".ipynb", RTF, "is a document with fonts and sizes"),
    "a pointer of Git LFS": (
        ".py",
        LFS,
        "is a pointer of Git LFS, not the file itself: run git lfs pull",
    ),
    "a pointer of Git LFS for a notebook": (
        ".ipynb",
        LFS,
        "is a pointer of Git LFS, not the file itself: run git lfs pull",
    ),
    "conflict marks of git": (
        ".py",
        "x = 1\n<<<<<<< HEAD\ny = 2\n=======\ny = 3\n>>>>>>> main\n",
        r"two versions that git could not merge \(line 2\)",
    ),
    "a notebook that git could not merge": (
        ".ipynb",
        notebook(RIGHT).replace(', "', ',\n<<<<<<< HEAD\n=======\n>>>>>>> main\n"', 1),
        r"two versions that git could not merge \(line 2\)",
    ),
}


@cases("ending, text, expected_message", NOT_PYTHON)
def test_a_file_that_is_not_python_has_a_specific_message(tmp_path, ending, text, expected_message):
    (tmp_path / f"{STEM}{ending}").write_text(text)
    assert re.search(expected_message, read_source(tmp_path).problem), read_source(tmp_path).problem


def hard_link(path: Path) -> None:
    """Create another file, and make the path a hard link to it."""
    path.with_name("elsewhere.py").write_text("the answer\n")
    os.link(path.with_name("elsewhere.py"), path)


REFUSED_FILES: dict[str, tuple[Callable[[Path], object] | bytes, str]] = {
    "a link to the grader's files": (lambda path: path.symlink_to(__file__), "not a link"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "not a link"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "not a link"),
    "a hard link": (hard_link, "is a hard link: hand in the file itself"),
    "a FIFO that nobody writes to": (os.mkfifo, "not a regular file"),
    "a folder": (Path.mkdir, "not a regular file"),
    "one byte more than allowed": (
        lambda path: path.write_bytes(b"#" * (size_limit(path.name, SIZE_LIMIT_KIB) * 1024 + 1)),
        "larger than (16|128) KiB",
    ),
    "a sparse terabyte": (
        lambda path: (path.touch(), os.truncate(path, 1 << 40)),
        "larger than (16|128) KiB",
    ),
    "a NUL byte": (b"x = 1\n\0", "contains NUL bytes"),
    "UTF-16": ("x = 1\n".encode("utf-16"), "is UTF-16 text.* save it as UTF-8"),
    "Latin-1": (b"x = 1\n# \xe9\n", r"not UTF-8 text \(line 2\)"),
    **{
        f"a coding line that says {name.decode()[:20]}": (
            b"# coding: %s\n# \xe9\xff\n" % name,
            r"not UTF-8 text \(line 2\)",
        )
        for name in [*b"utf-8 punycode unicode_escape rot13 ..os shift_jis".split(), b"x" * 900]
    },
}


@pytest.mark.parametrize("ending", [".py", ".ipynb"])
@cases("create, expected_message", REFUSED_FILES)
def test_a_file_that_is_not_plain_text_is_refused(tmp_path, create, expected_message, ending):
    path = tmp_path / f"{STEM}{ending}"
    path.write_bytes(create) if isinstance(create, bytes) else create(path)
    attempt = read_source(tmp_path)
    assert (attempt.name, attempt.text, attempt.missing) == (path.name, "", False)
    assert attempt.problem.startswith(path.name)
    assert re.search(expected_message, attempt.problem), attempt.problem
    assert "\n" not in attempt.problem


BOTH = f"Both {STEM}.py and {STEM}.ipynb were worked on: the .py counts."
SCRIPT_OR_NOTEBOOK = {
    "an unchanged stub": (STUB, "x = 1", ".ipynb", ""),
    "a stub with a comment": (STUB + "\n# I shall use the notebook\n", "x = 1", ".ipynb", ""),
    "a stub with Windows line ends": (STUB.replace("\n", "\r\n"), "x = 1", ".ipynb", ""),
    "a stub with blanks": ("\n" + STUB.replace("x):", "x):   ") + "\n\n", "x = 1", ".ipynb", ""),
    "a stub with one line more": (
        STUB.replace("raise", "return 1\n    raise"),
        "x = 1",
        ".py",
        BOTH,
    ),
    "a stub with another indent": (STUB.replace("    raise", "  raise"), "x = 1", ".py", BOTH),
    "nothing at all": ("", "x = 1", ".py", BOTH),
    "a script that cannot be read": ("\0", "x = 1", ".py", BOTH),
    "code, and an unchanged notebook": ("x = 2\n", STUB, ".py", ""),
    "a stub, and an unchanged notebook": (STUB, STUB, ".ipynb", ""),
}


@cases("script, notebook_code, counted_ending, note", SCRIPT_OR_NOTEBOOK)
def test_a_script_counts_before_a_notebook_unless_it_is_the_stub(
    tmp_path, script, notebook_code, counted_ending, note
):
    (tmp_path / f"{STEM}.py").write_bytes(script.encode())
    (tmp_path / f"{STEM}.ipynb").write_text(notebook(notebook_code))
    assert (read_source(tmp_path).name, read_source(tmp_path).note) == (
        f"{STEM}{counted_ending}",
        note,
    )
    assert read_source(tmp_path, stub=None).note == BOTH, "where the stub is not known"


def test_a_stub_with_the_exercises_earlier_name_does_not_count(tiny_copy, tmp_path):
    settings = tiny_copy / "course.yaml"
    row = "- id: running_mean\n"
    settings.write_text(settings.read_text().replace(row, f"{row}        was: [mean_so_far]\n"))
    exercise = load_course(tiny_copy).exercises[0]
    (tmp_path / "01_mean_so_far.py").write_text(STUB)
    (tmp_path / "01_mean_so_far.ipynb").write_text(notebook(RIGHT))
    attempt = read_exercise(tmp_path, exercise, Source("", STUB).code_digest, SIZE_LIMIT_KIB)
    assert attempt.name == "01_mean_so_far.ipynb"
    assert attempt.note == (
        "Graded from 01_mean_so_far.ipynb: this exercise is called 01_running_mean now."
    )


def test_notebooks_may_be_large_but_have_limited_cells(tmp_path):
    document = json.loads(notebook("x = 1"))
    document["cells"][0]["outputs"] = [
        {"output_type": "display_data", "data": {"image/png": "A" * 4 * 1024 * SIZE_LIMIT_KIB}}
    ]
    (tmp_path / f"{STEM}.ipynb").write_text(json.dumps(document))
    assert (read_source(tmp_path).problem, read_source(tmp_path).text) == ("", "x = 1\n")
    cells = '{"cell_type":"code","source":""},' * 30_000
    (tmp_path / f"{STEM}.ipynb").write_text(f'{{"cells":[{cells[:-1]}]}}')
    clear = "Clear its outputs (Edit, Clear Outputs of All Cells), and save it."
    assert (
        read_source(tmp_path).problem
        == f"{STEM}.ipynb is larger than {8 * SIZE_LIMIT_KIB} KiB. {clear}"
    )
    assert (
        read_attempt(tmp_path, STEM, None, 1024).problem
        == "This notebook has 30000 cells; at most 2000 are read."
    )


def test_the_digest_depends_on_everything_but_the_note():
    attempt = Source("a.py", "x = 1\n")
    assert with_fields(attempt, note="another note").digest == attempt.digest
    changes = {"name": "b.py", "text": "x = 2\n", "cells": (1,), "missing": True, "problem": "x"}
    variants = [with_fields(attempt, **{name: value}) for name, value in changes.items()]
    assert len({source.digest for source in (attempt, *variants)}) == 1 + len(changes)


def test_a_copy_with_the_same_text_is_not_parsed_again():
    attempt = Source("a.py", "x = 1\n")
    statements = attempt.tree
    assert with_fields(attempt, note="a note").tree is statements
    assert with_fields(attempt, text="x = 2\n").tree is not statements


def test_a_cell_is_parsed_on_its_own_with_the_notebooks_line_numbers():
    two_cells = read_notebook(notebook("x = 1\ny = (", "def f():\n    return 1"))
    first_cell, second_cell = two_cells.cell_sources
    assert [two_cells.cell_around(line) for line in (1, 2, 3, 4, 5)] == (
        [first_cell] * 3 + [second_cell] * 2
    )
    assert two_cells.tree == first_cell.tree == ()
    assert second_cell.definition("f").lineno == 4
    assert first_cell.python_message() == "'(' was never closed"
    assert second_cell.python_message() == ""


@pytest.mark.parametrize("ending", [".py", ".ipynb"])
def test_a_file_with_too_many_lines_is_refused_with_the_reason(tmp_path, ending):
    """Feedback shows line numbers. With 90,000 lines, an attempt could raise on a line whose number
    encodes a hidden input.
    """
    for lines, expected_message in ((LINE_LIMIT - 10, ""), (LINE_LIMIT, f"{STEM}{ending} has 5,0")):
        text = "x = 1\n" + "\n" * lines + "raise LookupError\n"
        (tmp_path / f"{STEM}{ending}").write_text(text if ending == ".py" else notebook(text))
        attempt = read_source(tmp_path)
        assert attempt.problem.startswith(expected_message)
        assert (
            bool(attempt.text)
            != bool(expected_message)
            == ("feedback tells the line of a mistake" in attempt.problem)
        )


def test_parsing_is_repeated_after_a_system_error_of_python(monkeypatch):
    """Two threads that parse at once can cause this error in Python 3.11; a second try succeeds."""
    parse, faults = (
        ast.parse,
        [SystemError("AST constructor recursion depth mismatch (before=147, after=86)")],
    )

    def fail_once(*arguments: object) -> object:
        if faults:
            raise faults.pop()
        return parse(*arguments)

    monkeypatch.setattr(source_text.ast, "parse", fail_once)
    assert [ast.unparse(statement) for statement in Source("", "x = 1").tree] == ["x = 1"]
    assert not faults


def defined_names(source: str) -> dict[str, Any]:
    """Run the source, and return the names that it defines."""
    names: dict[str, Any] = {}
    exec(compile(source, "attempt", "exec"), names)
    del names["__builtins__"]
    return names


def cells(*types_and_sources: tuple[str, object]) -> str:
    """Return a notebook's text with cells of these types and sources."""
    cell_dicts = [
        {"cell_type": cell_type, "metadata": {}, "source": source}
        for cell_type, source in types_and_sources
    ]
    return json.dumps({"cells": cell_dicts, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@cases(
    "types_and_sources, source",
    {
        "words and code": (
            [("markdown", "# Words"), ("code", "x = 1"), ("raw", "more"), ("code", "x += 1")],
            "x = 1\n\nx += 1\n",
        ),
        "a list of lines": ([("code", ["x = 1\n", "y = 2"])], "x = 1\ny = 2\n"),
        "nothing": ([], "\n"),
    },
)
def test_code_cells_are_joined_and_other_cells_left_out(types_and_sources, source):
    assert read_notebook(cells(*types_and_sources)).text == source


@cases(
    "cell, expected_names",
    {
        "a line magic": ("%matplotlib inline\nx = 1", {"x": 1}),
        "a shell line": ("!pip install einops\nx = 1", {"x": 1}),
        "a shell line that goes on in the next one": (
            "!pip install \\\n    einops\nx = 1",
            {"x": 1},
        ),
        "questions before and after a name": ("?print\nx = 1\nprint??", {"x": 1}),
        "a magic alone in a block": ("if True:\n    %time\nx = 1", {"x": 1}),
        "a magic that is assigned": ("where = %pwd\nx = 1", {"where": None, "x": 1}),
        "a timed cell": ("%%time\nx = 1", {"x": 1}),
        "a shell cell": ("%%bash\nrm -rf / && x=1", {}),
        "a cell that would write a file": ("%%writefile helper.py\nx = 1", {}),
        "a shell cell after blank lines": ("\n\n%%bash\nls | grep x", {}),
        "a line that begins with the operator %": ("x = (7\n% 4)", {"x": 3}),
        "the operator % in a cell with a magic": ("%pwd\nx = (7\n     % 4)", {"x": 3}),
        "the operator != in a cell with a magic": ("%pwd\nx = (7\n     != 4)", {"x": True}),
        "a text that looks like magics": ("x = '''\n%pwd\n!ls\n'''", {"x": "\n%pwd\n!ls\n"}),
        "a text that looks like magics, among magics": (
            "%pwd\n!ls \\\n  -l\nx = '''Why?\n%d of\n!all'''\ny = !ls\nx?",
            {"x": "Why?\n%d of\n!all", "y": None},
        ),
        "a cell pasted from further in": ("    x = 1\n    if x:\n        y = 2", {"x": 1, "y": 2}),
        "remarks that ask": ("# is it right?\nx = 1  # is it?\n%pwd", {"x": 1}),
        "nothing but a cell magic": ("%%time", {}),
    },
)
def test_magics_are_removed_and_python_is_kept(cell, expected_names):
    assert defined_names(read_notebook(notebook(cell)).text) == expected_names


@pytest.mark.parametrize(
    "cell", ["%matplotlib inline\n!ls\nx = 1\nraise ValueError", "%%time\n\n\nraise ValueError"]
)
def test_removing_magics_keeps_line_numbers(cell):
    tree = ast.parse(read_notebook(notebook(cell)).text)
    assert tree.body[-1].lineno == 4


def test_a_syntax_error_in_a_cell_keeps_its_line_number():
    with pytest.raises(SyntaxError) as error:
        ast.parse(read_notebook(notebook("x = 1", "def f(:\n    pass")).text)
    assert error.value.lineno == 3


INVALID_NOTEBOOKS = {
    "an empty file": "",
    "a list": "[]",
    "a notebook of ten years ago": '{"worksheets": [{"cells": []}]}',
    "cells that are a text": '{"cells": "code"}',
    "a cell of no type": '{"cells": [{"source": "x"}]}',
    "a cell without a source": '{"cells": [{"cell_type": "code"}]}',
    "a source that is a number": notebook(3),
    "a file that was cut off": notebook("x = 1")[:-1],
    "brackets without end": "[" * 100_000,
    "a number of ten thousand digits": '{"cells": ' + "9" * 10_000 + "}",
    "half of a surrogate pair": notebook("x = '\ud800'"),
    "a NUL that is escaped": notebook("x = 1\0"),
}


@cases("text", INVALID_NOTEBOOKS)
def test_an_invalid_notebook_is_refused_with_one_message(text):
    with pytest.raises(
        NotebookError,
        match=r"^This is not a notebook that can be read: save it again from Jupyter\.$",
    ):
        read_notebook(text)


def test_a_notebook_with_too_much_code_is_refused_before_parsing():
    """Python's parser needs a gigabyte of memory for a megabyte of names and commas."""
    line = "a," * 49 + "a\n"
    assert line in read_notebook(notebook(line * (CODE_LIMIT // 100 - 1), "%timeit x")).text
    with pytest.raises(NotebookError, match="has more than 200,000 characters of code"):
        read_notebook(notebook(line * (CODE_LIMIT // 200), line * (CODE_LIMIT // 200), "x"))


@cases(
    "cell",
    {
        "brackets": "(" * 100_000,
        "signs": "x = " + "-" * 100_000 + "1",
        "dots": "x" + ".x" * 90_000,
        "magics": "%\n" * 100_000,
        "a magic that goes on": "!\\\n" * 60_000,
        "a text that never ends": "'''" + "\\\n" * 90_000,
    },
)
def test_a_hostile_cell_does_not_crash_the_reader(cell):
    assert read_notebook(notebook(cell)).text.endswith("\n")


def test_visible_checks_are_removed_also_after_a_very_long_comment():
    picture = "# ![](data:image/png;base64," + "A" * CODE_LIMIT + ")\n"
    script = Source("a.py", picture + "import manyheads\nx = 1\n")
    assert without_engine(script) == Source("a.py", picture + "\nx = 1\n")


@cases(
    "text, remaining_text",
    {
        "code before": ("x = 'é'; import manyheads\n", "x = 'é'; pass\n"),
        "code behind": ("import manyheads; x = 1\n", "pass; x = 1\n"),
        "a semicolon alone": ("import manyheads;\nx = 1\n", "\nx = 1\n"),
        "several lines": ("from manyheads import (\n    a,\n)\nx = 1\n", "\n\n\nx = 1\n"),
    },
)
def test_removing_visible_checks_keeps_code_on_the_same_line(text, remaining_text):
    assert without_engine(Source("a.py", text)).text == remaining_text


LESSON = f"# The running mean\n\nIt looks like this:\n\n```python\n{RIGHT}```\n"
MARKDOWN = "stands in a Markdown cell: make it a code cell."
CELLS_NOT_RUN = {
    "Markdown": (("markdown", RIGHT), MARKDOWN),
    "Markdown, as lines": (("markdown", RIGHT.splitlines(keepends=True)), MARKDOWN),
    "Markdown, with a remark above": (
        ("markdown", f"# My answer\nimport torch\n{RIGHT}"),
        MARKDOWN,
    ),
    "Raw": (("raw", RIGHT), "stands in a Raw cell: make it a code cell."),
    "written to a file": (
        ("code", f"%%writefile mean.py\n{RIGHT}"),
        "stands in a cell that begins with %%writefile, which does not run it: take that line out.",
    ),
    "handed to a shell": (
        ("code", f"\n%%bash\n{RIGHT}"),
        "stands in a cell that begins with %%bash, which does not run it: take that line out.",
    ),
    "a lesson that shows it": (("markdown", LESSON), ""),
    "a lesson that speaks of it": (("markdown", "Write\ndef running_mean as you like"), ""),
    "another function": (("markdown", RIGHT.replace("running_mean", "mean")), ""),
    "no text": (("markdown", 3), ""),
    "half of a surrogate pair": (("markdown", RIGHT + "# \ud800"), ""),
    "an unknown cell type": (("heading", RIGHT), ""),
}


@cases("cell, expected_message", CELLS_NOT_RUN)
def test_a_function_in_a_cell_that_is_not_run_gets_advice(cell, expected_message):
    source = read_notebook(cells(("code", "import torch"), cell))
    assert location_of(source, "running_mean") == expected_message
    assert location_of(read_notebook(cells(("code", RIGHT), cell)), "running_mean").startswith(
        "stands on line 1"
    )


def test_a_markdown_cell_without_source_is_allowed():
    text = cells(("code", "x = 1"), ("markdown", None)).replace(', "source": null', "")
    assert read_notebook(text).text == "x = 1\n"


UNWRITTEN_BODIES = [
    "pass",
    '"""The mean."""',
    "...",
    "return",
    "return None",
    "raise NotImplementedError",
    'raise NotImplementedError("later")',
    '"""The mean."""\n    pass',
]
MODULE = "from torch import nn\n\n\nclass Head(nn.Module):\n"
UNWRITTEN_FILES = {
    "a class": f"{MODULE}    pass\n",
    "methods": (
        f"{MODULE}    def __init__(self, n):\n        super().__init__()\n\n"
        "    def forward(self, x):\n        pass\n"
    ),
    "the parent named": (
        f"{MODULE}    def __init__(self, n):\n        super(Head, self).__init__()\n"
    ),
    "nothing at all": "",
    "remarks": "# Attention scores\n\n    # later\n",
    "a demonstration": (
        'def mean(x):\n    pass\n\n\nif __name__ == "__main__":\n    def show(x):\n'
        "        print(x)\n"
    ),
}
WRITTEN_FILES = {
    "a parent of a very long name": f"class A(a{'.b' * 900}):\n    pass\n",
    "a parent that is no name": "class A(f()):\n    pass\n",
    "no function": "import torch\n",
    "no Python": "def mean(x):\n",
    "a line": "def mean(x):\n    y = x.mean()\n",
    "one of two": "def mean(x):\n    return x.mean()\n\n\ndef total(x):\n    pass\n",
    "a lambda": "mean = lambda x: x.mean()\n\n\ndef total(x):\n    pass\n",
    "a parent that brings something": (
        "from torch import nn\n\n\nclass Head(nn.MultiheadAttention):\n    pass\n"
    ),
    "a layer": (
        f"{MODULE}    def __init__(self):\n        super().__init__()\n"
        "        self.proj = nn.Linear(2, 2)\n"
    ),
    "a method from elsewhere": f"{MODULE}    pass\n\n\nHead.forward = print\n",
    "an attribute of the class": f"{MODULE}    forward = print\n",
    (
        "what takes a thousand bytes of memory for each character"
    ): f"def mean(x):\n    pass\n{'x;' * CODE_LIMIT}\n",
    "code nested too deeply for Python": f"def mean(x):\n    {'(' * 10_000}{')' * 10_000}\n",
    "a decorator": "import functools\n\n\n@functools.cache\ndef mean(x):\n    pass\n",
}


@pytest.mark.parametrize(
    "text",
    [*(f"def mean(x):\n    {body}\n" for body in UNWRITTEN_BODIES), *UNWRITTEN_FILES.values()],
    ids=[*UNWRITTEN_BODIES, *UNWRITTEN_FILES],
)
def test_a_file_without_code_of_its_own_is_unwritten(text):
    assert Source("attempt.py", text).is_unwritten


@cases("text", WRITTEN_FILES)
def test_a_file_with_code_of_its_own_is_not_unwritten(text):
    assert not Source("attempt.py", text).is_unwritten


@cases(
    "files, is_unwritten",
    {
        "every stub": ("exercises/*/*.py", True),
        "no solution": ("solutions/*/*.py", False),
        "no right attempt": ("grader/right/*/*.py", False),
    },
)
def test_stubs_are_unwritten_and_solutions_are_not(files, is_unwritten):
    paths = sorted(REPOSITORY.glob(files))
    sources = [Source(path.name, path.read_text(encoding="utf-8")) for path in paths]
    assert sources
    assert [source.name for source in sources if source.is_unwritten is not is_unwritten] == []


def test_unwritten_functions_and_classes_are_listed():
    class_template = (
        "class {}(nn.Module):\n    def __init__(self):\n        super().__init__()\n\n"
        "    def forward(self, x):\n        {}\n"
    )
    written_functions = (
        "def mean(x):\n    return x.mean()\n\ndef again(x):\n    pass\n\ndef again(x):\n"
        "    return x\n"
    )
    text = (
        f"{written_functions}def total(x):\n    pass\n"
        f"{class_template.format('Head', 'raise NotImplementedError')}"
        f"{class_template.format('Body', 'return x')}"
    )
    assert Source("attempt.py", text).unwritten_names == {"total", "Head"}


@cases(
    "text, left_over_raise",
    {
        "above the code": (
            "def mean(x):\n    raise NotImplementedError()\n    return x.mean()\n",
            LeftOver(2, is_below=False),
        ),
        "below it": (
            "def mean(x):\n    y = x.mean()\n    raise NotImplementedError\n",
            LeftOver(3, is_below=True),
        ),
        "in a method": (
            "class mean:\n    def forward(self, x):\n        raise NotImplementedError\n"
            "        return x\n",
            LeftOver(3, is_below=False),
        ),
        "alone": ('def mean(x):\n    """The mean."""\n    raise NotImplementedError()\n', None),
        "of another method": (
            "class mean:\n    def __init__(self, n):\n        self.n = n\n\n"
            "    def forward(self, x):\n        raise NotImplementedError\n",
            None,
        ),
        "a refusal": (
            "def mean(x):\n    if not x.numel():\n        raise NotImplementedError\n"
            "    return total(x)\n",
            None,
        ),
        "elsewhere": ("def total(x):\n    raise NotImplementedError\n    return x.sum()\n", None),
    },
)
def test_a_leftover_raise_of_the_stub_is_found(text, left_over_raise):
    assert Source("attempt.py", text).left_over_raise("mean") == left_over_raise


MEAN = "def mean(x):\n    return x.mean()\n"
INDENTED_MEAN = "    def mean(x):\n        return x.mean()\n"
NO_CODE = "that is text, not code. Take it out of the quotes."
NO_LONGER_DEFINED = (
    "and is no function or class once all has run. Did something stop above it, or give its "
    "name to something else below?"
)
INSIDE = "on {} inside the `{}` on {}, which keeps it from being seen. Move it to the left margin."
LOCATIONS = {
    "in a string": (
        f'x = 1\n"""\n{MEAN}"""\n',
        f"stands inside the string that begins on line 2: {NO_CODE}",
    ),
    "in a docstring": (
        f'def total(x):\n    """Not yet:\n{INDENTED_MEAN}"""\n',
        f"stands inside the string that begins on line 2: {NO_CODE}",
    ),
    "in a class": (
        f"class A:\n{INDENTED_MEAN}",
        f"stands {INSIDE.format('line 2', 'class', 'line 1')}",
    ),
    "in a function": (
        f"def total(x):\n    return x\n{INDENTED_MEAN}",
        f"stands {INSIDE.format('line 3', 'function', 'line 1')}",
    ),
    "below the main guard": (
        f'if __name__ == "__main__":\n{INDENTED_MEAN}',
        f"stands {INSIDE.format('line 2', 'if', 'line 1')}",
    ),
    "below except": (
        f"try:\n    pass\nexcept OSError:\n{INDENTED_MEAN}",
        f"stands {INSIDE.format('line 4', 'try', 'line 1')}",
    ),
    "in a case": (
        f"match 1:\n  case 2:\n{INDENTED_MEAN}",
        f"stands {INSIDE.format('line 3', 'match', 'line 1')}",
    ),
    "commented out": (
        "x = 1\n    #def mean(x):\n",
        "is commented out on line 2: take the # away, there and on the lines below.",
    ),
    "deleted": (f"{MEAN}del mean\n", f"stands on line 1, {NO_LONGER_DEFINED}"),
    "overwritten": (f"{MEAN}mean = None\n", f"stands on line 1, {NO_LONGER_DEFINED}"),
    "below a line that raises": (f"1 / 0\n{MEAN}", f"stands on line 2, {NO_LONGER_DEFINED}"),
    "nowhere": ("def total(x):\n    return x\n", ""),
    "in a text that is too long": (f"class A:\n{INDENTED_MEAN}{'x;' * CODE_LIMIT}", ""),
    "in words": ('"""The mean, of which def is short for definition."""\n# define mean here\n', ""),
    "under a longer name": ('"""\ndef means(x):\n"""\nclass A:\n    def my_mean(x): pass\n', ""),
    "in a call's argument": ("def total(mean):\n    mean = mean + 1\n    return mean\n", ""),
}


@cases("source, expected_message", LOCATIONS)
def test_the_location_of_a_definition_that_is_not_seen_is_explained(source, expected_message):
    assert location_of(Source("a.py", source), "mean") == expected_message


LOCATIONS_IN_CELLS = {
    "that is no Python": (
        ["x = 1", f"x = (\n{MEAN}"],
        "stands in code cell 2, which Python cannot read. Mend that cell first.",
    ),
    "that stopped": (
        ["x = 1", f"1 / 0\n{MEAN}"],
        f"stands on line 2 of code cell 2, {NO_LONGER_DEFINED}",
    ),
    "inside a class, beside a broken cell": (
        ["x = (", f"x = 1\nclass A:\n{INDENTED_MEAN}"],
        f"stands {INSIDE.format('line 3 of code cell 2', 'class', 'line 2 of code cell 2')}",
    ),
    "in a string, beside a broken cell": (
        ["x = (", f"x = 1\n'''\n{MEAN}'''"],
        f"stands inside the string that begins on line 2 of code cell 2: {NO_CODE}",
    ),
    "nowhere": (["x = 1"], ""),
}


@cases("cell_codes, expected_message", LOCATIONS_IN_CELLS)
def test_the_location_in_a_notebook_names_the_cell(cell_codes, expected_message):
    assert location_of(read_notebook(notebook(*cell_codes)), "mean") == expected_message


MEAN_STUB = "def mean(x):\n    raise NotImplementedError()\n"
SOLUTIONS_BESIDE_THE_STUB = {
    "above the stub": (
        f"{MEAN}\n{MEAN_STUB}",
        (
            "what is written on line 1 is not seen, for the stub on line 4 counts. Write it in "
            "the stub's place"
        ),
    ),
    "in a class": (
        f"{MEAN_STUB}class A:\n{INDENTED_MEAN}",
        (
            "what is written on line 4 is not seen, for the stub on line 1 counts. Write it in "
            "the stub's place"
        ),
    ),
    "nowhere": (f"{MEAN_STUB}\n{MEAN_STUB}", ""),
    "alone": (MEAN_STUB, ""),
}


@cases("source, expected_message", SOLUTIONS_BESIDE_THE_STUB)
def test_a_solution_that_a_later_stub_replaces_is_located(source, expected_message):
    assert where_it_is_written(Source("a.py", source), "mean") == expected_message


CHAIN_OF_USES = Source(
    "attempt.py",
    """
def scores(q, k): return q @ k.mT
def helper(q, k): return scores(q, k)
def attend(q, k, v): return helper(q, k) @ v
class Head(Module):
    def forward(self, x): return attend(x, x, x) + Head.size
if __name__ == "__main__":
    def scores(): return attend
""",
)


def test_uses_are_transitive():
    assert {name: CHAIN_OF_USES.uses(name) for name in CHAIN_OF_USES.names_used} == {
        "scores": frozenset(),
        "helper": {"scores"},
        "attend": {"helper", "scores"},
        "Head": {"attend", "helper", "scores"},
    }


def test_a_source_that_is_not_python_has_no_names():
    source = Source("attempt.py", "def f(:")
    assert (source.names_used, source.uses("f")) == ({}, frozenset())


@pytest.mark.parametrize("depth", [10, 11])
def test_only_a_few_comprehensions_are_read_inside_each_other(depth):
    """The compiler of Python 3.13 crashes at 24."""
    text = "y = " + "[" * depth + "x" + " for x in x]" * depth
    assert bool(Source("", text).tree) is (depth <= 10)
