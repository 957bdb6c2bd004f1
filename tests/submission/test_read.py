"""One attempt's file: a plain file of bounded size is read as text, anything else becomes one sentence."""

import ast
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.submission import AttemptSource, code_digest, largest, read_attempt, source_text
from manyheads.submission.read import LINE_LIMIT
from tests.make import notebook

STEM = "01_running_mean"
STUB = "def running_mean(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()\n"
RIGHT = "def running_mean(x):\n    return x.mean()\n"
KIB = 16


def read(folder: Path, stub: str | None = STUB) -> AttemptSource:
    return read_attempt(folder, STEM, None if stub is None else code_digest(stub), KIB)


def test_a_file_that_is_not_there_is_missing_and_no_fault(tmp_path):
    assert read(tmp_path) == AttemptSource(f"{STEM}.py", missing=True)


SCRIPTS = {
    "plain text as it is": (b"x = 1\n", "x = 1\n"),
    "an empty file as nothing": (b"", ""),
    "a byte order mark is dropped": (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
    "Windows line ends": (b"x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
    "old Mac line ends": (b"x = 1\ry = 2\r", "x = 1\ny = 2\n"),
    "letters beyond ASCII": ("é = '→'\n".encode(), "é = '→'\n"),
    "what a coding line says": (b"# coding: latin-1\n# \xe9\n", "# coding: latin-1\n# é\n"),
    "what a coding line on the second line says": (b"#!/bin/py\n# vim: set fileencoding=cp1252 :\nx = '\x93'\n", "#!/bin/py\n# vim: set fileencoding=cp1252 :\nx = '“'\n"),
    "letters of several bytes": ("# coding: gbk\n# 头\n".encode("gbk"), "# coding: gbk\n# 头\n"),
    "UTF-8 that says otherwise": ("# coding: ascii\n# é\n".encode(), "# coding: ascii\n# é\n"),
    "a file of exactly the largest size": (b"x" * KIB * 1024, "x" * KIB * 1024),
    "the marks of git in what Python can read": (b'"""Solved:\n<<<<<<< HEAD\n=======\n>>>>>>> main\n"""\nx = 1\n', '"""Solved:\n<<<<<<< HEAD\n=======\n>>>>>>> main\n"""\nx = 1\n'),
    "a fence in a docstring": (b'def f():\n    """\n    ```\n    f()\n    ```\n    """\n', 'def f():\n    """\n    ```\n    f()\n    ```\n    """\n'),
    "a fence in a docstring beside a mistake": (b'"""\n```\n"""\ndef f(:\n', '"""\n```\n"""\ndef f(:\n'),
    "what Colab and jupytext leave": (b"!pip install \"x[y\" \\\n  -q\n%matplotlib inline\n%%time\nfiles = !ls\nx = (7\n%4)\nx?\n", "pass\n\npass\npass\nfiles = None\nx = (7\n%4)\npass\n"),
    "a line of IPython's in a text": (b"x = '''\n!ls\n'''\n!ls\n", "x = '''\n!ls\n'''\npass\n"),
    "a question that is no help": (b"return x?\n", "return x?\n"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "source"), SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_is_read(tmp_path, data, source):
    (tmp_path / f"{STEM}.py").write_bytes(data)
    assert read(tmp_path) == AttemptSource(f"{STEM}.py", source)


def test_a_script_is_the_same_attempt_as_the_notebook_that_it_was_made_of(tmp_path):
    text = f"!pip install einops\n%load_ext autoreload\n{RIGHT}"
    (tmp_path / f"{STEM}.ipynb").write_text(notebook(text))
    from_notebook = read(tmp_path)
    (tmp_path / f"{STEM}.ipynb").unlink()
    (tmp_path / f"{STEM}.py").write_text(text)
    due = code_digest(f"pass\npass\n{RIGHT}")
    assert code_digest(read(tmp_path).source) == code_digest(from_notebook.source) == due


WEB = '<!DOCTYPE html>\n<html lang="en">\n<head><title>01_running_mean.py at main</title></head>\n'
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab\nsize 12345\n"
FENCE = r"^01_running_mean\.py has a code fence on line {}, which is Markdown: keep the code alone"
NO_PYTHON = {
    "a web page": (".py", WEB, "is a web page, saved in place of the file: download the file itself"),
    "a web page for a notebook": (".ipynb", f"\n{WEB}", "is a web page, saved in place of the file"),
    "a web page that is too large": (".py", WEB + "<p>" * KIB * 1024, "is a web page, saved in place of the file"),
    "a code fence": (".py", f"```python\n{RIGHT}```\n", FENCE.format(1)),
    "a code fence below words": (".py", f"Sure! Here's the mean:\n\n```python\n{RIGHT}```\n", FENCE.format(3)),
    "a notebook named .py": (".py", notebook(RIGHT), r"^01_running_mean\.py is a notebook: rename it to 01_running_mean\.ipynb\.$"),
    "a notebook named .py, with pictures": (".py", json.dumps(json.loads(notebook(RIGHT)), indent=1) + " " * KIB * 1024, "is a notebook: rename it"),
    "a script named .ipynb": (".ipynb", f"import torch\n\n\n{RIGHT}", r"^01_running_mean\.ipynb is a script: rename it to 01_running_mean\.py\.$"),
    "a script that is no Python, named .ipynb": (".ipynb", "!ls\n" + RIGHT.replace(":", ""), "is a script: rename it"),
    "a pointer of Git LFS": (".py", LFS, "is a pointer of Git LFS, not the file itself: run git lfs pull"),
    "a pointer of Git LFS for a notebook": (".ipynb", LFS, "is a pointer of Git LFS, not the file itself: run git lfs pull"),
    "what git could not merge": (".py", "x = 1\n<<<<<<< HEAD\ny = 2\n=======\ny = 3\n>>>>>>> main\n", r"two versions that git could not merge \(line 2\)"),
    "a notebook that git could not merge": (".ipynb", notebook(RIGHT).replace(', "', ',\n<<<<<<< HEAD\n=======\n>>>>>>> main\n"', 1), r"two versions that git could not merge \(line 2\)"),
}  # fmt: skip


@pytest.mark.parametrize(("ending", "text", "says"), NO_PYTHON.values(), ids=NO_PYTHON)
def test_what_is_no_python_at_all_has_a_sentence_of_its_own(tmp_path, ending, text, says):
    (tmp_path / f"{STEM}{ending}").write_text(text)
    assert re.search(says, read(tmp_path).problem), read(tmp_path).problem


def hard_link(path: Path) -> None:
    path.with_name("elsewhere.py").write_text("the answer\n")
    os.link(path.with_name("elsewhere.py"), path)


NO_FILES: dict[str, tuple[Callable[[Path], object] | bytes, str]] = {
    "a link to the grader's files": (lambda path: path.symlink_to(__file__), "not a link"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "not a link"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "not a link"),
    "a hard link": (hard_link, "is a hard link: hand in the file itself"),
    "a FIFO that nobody writes to": (os.mkfifo, "not a regular file"),
    "a folder": (Path.mkdir, "not a regular file"),
    "one byte more": (lambda path: path.write_bytes(b"#" * (largest(path.name, KIB) * 1024 + 1)), "larger than (16|128) KiB"),
    "a sparse terabyte": (lambda path: (path.touch(), os.truncate(path, 1 << 40)), "larger than (16|128) KiB"),
    "a NUL byte": (b"x = 1\n\0", "contains NUL bytes"),
    "UTF-16": ("x = 1\n".encode("utf-16"), "is UTF-16 text.* save it as UTF-8"),
    "Latin-1": (b"x = 1\n# \xe9\n", r"not UTF-8 text \(line 2\)"),
    **{f"a coding line that says {name.decode()[:20]}": (b"# coding: %s\n# \xe9\xff\n" % name, r"not UTF-8 text \(line 2\)")
       for name in (b"utf-8", b"punycode", b"unicode_escape", b"rot13", b"..os", b"shift_jis", b"x" * 900)},
}  # fmt: skip


@pytest.mark.parametrize("ending", [".py", ".ipynb"])
@pytest.mark.parametrize(("make", "says"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_not_a_plain_text_file_is_refused_in_one_sentence(tmp_path, make, says, ending):
    path = tmp_path / f"{STEM}{ending}"
    path.write_bytes(make) if isinstance(make, bytes) else make(path)
    attempt = read(tmp_path)
    assert (attempt.name, attempt.source, attempt.missing) == (path.name, "", False)
    assert attempt.problem.startswith(path.name)
    assert re.search(says, attempt.problem), attempt.problem
    assert "\n" not in attempt.problem


BOTH = f"Both {STEM}.py and {STEM}.ipynb were worked on: the .py counts."
WHICH = {
    "a stub as it was": (STUB, "x = 1", ".ipynb", ""),
    "a stub with a remark": (STUB + "\n# I shall use the notebook\n", "x = 1", ".ipynb", ""),
    "a stub with Windows line ends": (STUB.replace("\n", "\r\n"), "x = 1", ".ipynb", ""),
    "a stub with blanks": ("\n" + STUB.replace("x):", "x):   ") + "\n\n", "x = 1", ".ipynb", ""),
    "a stub with one line more": (STUB.replace("raise", "return 1\n    raise"), "x = 1", ".py", BOTH),
    "a stub with another indent": (STUB.replace("    raise", "  raise"), "x = 1", ".py", BOTH),
    "nothing at all": ("", "x = 1", ".py", BOTH),
    "what cannot be read": ("\0", "x = 1", ".py", BOTH),
    "code, and a notebook as it was": ("x = 2\n", STUB, ".py", ""),
    "a stub, and a notebook as it was": (STUB, STUB, ".ipynb", ""),
}  # fmt: skip


@pytest.mark.parametrize(("script", "other", "counts", "note"), WHICH.values(), ids=WHICH)
def test_of_a_script_and_a_notebook_the_script_counts_unless_it_is_the_stub(tmp_path, script, other, counts, note):
    (tmp_path / f"{STEM}.py").write_bytes(script.encode())
    (tmp_path / f"{STEM}.ipynb").write_text(notebook(other))
    assert (read(tmp_path).name, read(tmp_path).note) == (f"{STEM}{counts}", note)
    assert read(tmp_path, stub=None).note == BOTH, "where the stub is not known"


def test_a_notebook_may_be_larger_than_a_script_and_has_bounded_cells(tmp_path):
    whole = json.loads(notebook("x = 1"))
    whole["cells"][0]["outputs"] = [{"output_type": "display_data", "data": {"image/png": "A" * 4 * 1024 * KIB}}]
    (tmp_path / f"{STEM}.ipynb").write_text(json.dumps(whole))
    assert (read(tmp_path).problem, read(tmp_path).source) == ("", "x = 1\n")
    cells = '{"cell_type":"code","source":""},' * 30_000
    (tmp_path / f"{STEM}.ipynb").write_text(f'{{"cells":[{cells[:-1]}]}}')
    clear = "Clear its outputs (Edit, Clear Outputs of All Cells), and save it."
    assert read(tmp_path).problem == f"{STEM}.ipynb is larger than {8 * KIB} KiB. {clear}"
    assert read_attempt(tmp_path, STEM, None, 1024).problem == "This notebook has 30000 cells; at most 2000 are read."


def test_the_digest_tells_attempts_apart_and_nothing_else():
    attempt = AttemptSource("a.py", "x = 1\n")
    assert attempt.digest == AttemptSource("a.py", "x = 1\n", note="another note").digest
    others = [AttemptSource("b.py", "x = 1\n"), AttemptSource("a.py", "x = 2\n"), AttemptSource("a.py", problem="x")]
    others += [AttemptSource("a.py", "x = 1\n", cells=(1,)), AttemptSource("a.py"), AttemptSource("a.py", missing=True)]
    assert len({attempt.digest, *(other.digest for other in others)}) == 7


@pytest.mark.parametrize("ending", [".py", ".ipynb"])
def test_a_line_beyond_any_honest_one_is_not_read_and_the_student_is_told_why(tmp_path, ending):
    """A line number is told: over 90,000 lines an attempt could choose one that spells a hidden input."""
    for lines, says in ((LINE_LIMIT - 10, ""), (LINE_LIMIT, f"{STEM}{ending} has 5,0")):
        text = "x = 1\n" + "\n" * lines + "raise LookupError\n"
        (tmp_path / f"{STEM}{ending}").write_text(text if ending == ".py" else notebook(text))
        attempt = read(tmp_path)
        assert attempt.problem.startswith(says)
        assert bool(attempt.source) != bool(says) == ("feedback tells the line of a mistake" in attempt.problem)


def test_who_loses_a_race_of_two_parsers_asks_again(monkeypatch):
    """The fault of Python 3.11 that a second try mends, played by a parser that has it once."""
    parse, faults = ast.parse, [SystemError("AST constructor recursion depth mismatch (before=147, after=86)")]

    def once_wrong(*arguments: object) -> object:
        if faults:
            raise faults.pop()
        return parse(*arguments)

    monkeypatch.setattr(source_text.ast, "parse", once_wrong)
    assert [ast.unparse(part) for part in source_text.read_statements("x = 1")] == ["x = 1"]
    assert not faults
