"""One attempt's file: a plain file of bounded size is read as text, anything else becomes one sentence."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.submission import AttemptSource, code_digest, largest, read_attempt
from manyheads.submission.read import LINE_LIMIT

STEM = "01_running_mean"
STUB = "def running_mean(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()\n"
KIB = 16


def read(folder: Path, stub: str | None = STUB) -> AttemptSource:
    return read_attempt(folder, STEM, None if stub is None else code_digest(stub), KIB)


def notebook(*sources: str | list[str]) -> str:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_a_file_that_is_not_there_is_missing_and_no_fault(tmp_path: Path) -> None:
    assert read(tmp_path) == AttemptSource(f"{STEM}.py", missing=True)


@pytest.mark.parametrize(("data", "source"), [
    pytest.param(b"x = 1\n", "x = 1\n", id="plain text as it is"),
    pytest.param(b"", "", id="an empty file as nothing"),
    pytest.param(b"\xef\xbb\xbfx = 1\n", "x = 1\n", id="a byte order mark is dropped"),
    pytest.param(b"x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n", id="Windows line ends"),
    pytest.param(b"x = 1\ry = 2\r", "x = 1\ny = 2\n", id="old Mac line ends"),
    pytest.param("é = '→'\n".encode(), "é = '→'\n", id="letters beyond ASCII"),
    pytest.param(b"# coding: latin-1\n# \xe9\n", "# coding: latin-1\n# é\n", id="what a coding line says"),
    pytest.param(b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x93'\n",
        "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '“'\n",
        id="what a coding line on the second line says"),
    pytest.param("# coding: gbk\n# 头\n".encode("gbk"), "# coding: gbk\n# 头\n", id="letters of several bytes"),
    pytest.param("# coding: ascii\n# é\n".encode(), "# coding: ascii\n# é\n", id="UTF-8 that says otherwise"),
    pytest.param(b"x" * KIB * 1024, "x" * KIB * 1024, id="a file of exactly the largest size"),
])  # fmt: skip
def test_a_script_is_read(tmp_path: Path, data: bytes, source: str) -> None:
    (tmp_path / f"{STEM}.py").write_bytes(data)
    assert read(tmp_path) == AttemptSource(f"{STEM}.py", source)


def symlink(path: Path) -> None:
    path.with_name("elsewhere.py").write_text("x = 1\n")
    path.symlink_to("elsewhere.py")


def hard_link(path: Path) -> None:
    path.with_name("elsewhere.py").write_text("x = 1\n")
    os.link(path.with_name("elsewhere.py"), path)


def unix_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's address may be 107 bytes long
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("ending", [".py", ".ipynb"])
@pytest.mark.parametrize(("make", "says"), [
    pytest.param(symlink, "not a link", id="a symbolic link"),
    pytest.param(lambda path: path.symlink_to("/etc/passwd"), "not a link", id="a link to the grader's files"),
    pytest.param(lambda path: path.symlink_to("nowhere"), "not a link", id="a link to nothing"),
    pytest.param(lambda path: path.symlink_to(path.name), "not a link", id="a link to itself"),
    pytest.param(hard_link, "is a hard link: hand in the file itself", id="a hard link"),
    pytest.param(lambda path: os.mkfifo(path), "not a regular file", id="a FIFO that nobody writes to"),
    pytest.param(unix_socket, "not a file that can be read", id="a socket"),
    pytest.param(lambda path: path.mkdir(), "not a regular file", id="a folder"),
    pytest.param(lambda path: path.write_bytes(b"#" * (largest(path.name, KIB) * 1024 + 1)), "larger than (16|128) KiB",
        id="one byte more"),
    pytest.param(lambda path: os.truncate(_touch(path), 1 << 40), "larger than (16|128) KiB", id="a sparse terabyte"),
    pytest.param(lambda path: path.write_bytes(b"x = 1\n\0"), "contains NUL bytes", id="a NUL byte"),
    pytest.param(lambda path: path.write_bytes("x = 1\n".encode("utf-16")), "is UTF-16 text.* save it as UTF-8",
        id="UTF-16"),
    pytest.param(lambda path: path.write_text("x = 1\n<<<<<<< HEAD\ny = 2\n=======\ny = 3\n>>>>>>> main\n"),
        r"two versions that git could not merge \(line 2\)", id="what git could not merge"),
    pytest.param(lambda path: path.write_bytes(b"x = 1\n# \xe9\n"), r"not UTF-8 text \(line 2\)", id="Latin-1"),
    *(pytest.param(lambda path, name=name: path.write_bytes(b"# coding: %s\n# \xe9\xff\n" % name),
        r"not UTF-8 text \(line 2\)", id=f"a coding line that says {name.decode()}") for name in (b"utf-8", b"punycode",
        b"unicode_escape", b"rot13", b"..os", b"shift_jis", b"x" * 900)),
])  # fmt: skip
def test_what_is_not_a_plain_text_file_is_refused_in_one_sentence(
    tmp_path: Path, make: Callable[[Path], object], says: str, ending: str
) -> None:
    path = tmp_path / f"{STEM}{ending}"
    make(path)
    attempt = read(tmp_path)
    assert (attempt.name, attempt.source, attempt.missing) == (path.name, "", False)
    assert attempt.problem.startswith(path.name)
    assert re.search(says, attempt.problem), attempt.problem
    assert "\n" not in attempt.problem


def _touch(path: Path) -> Path:
    path.touch()
    return path


def test_the_marks_of_git_in_what_python_can_read_are_text_as_any_other(tmp_path: Path) -> None:
    source = '"""Solved:\n<<<<<<< HEAD\n=======\n>>>>>>> main\n"""\nx = 1\n'
    (tmp_path / f"{STEM}.py").write_text(source)
    assert read(tmp_path) == AttemptSource(f"{STEM}.py", source)


def test_what_stands_behind_a_link_is_never_read(tmp_path: Path) -> None:
    (tmp_path / "answer.py").write_text("the answer\n")
    (tmp_path / f"{STEM}.py").symlink_to("answer.py")
    assert "answer" not in repr(read(tmp_path))


@pytest.mark.parametrize("touched", [
    pytest.param(STUB, id="as it was"),
    pytest.param(STUB + "\n# I shall use the notebook\n", id="with a remark"),
    pytest.param(STUB.replace("\n", "\r\n"), id="with Windows line ends"),
    pytest.param("\n" + STUB.replace("x):", "x):   ") + "\n\n", id="with blanks at line ends and around it"),
])  # fmt: skip
def test_beside_an_untouched_stub_the_notebook_counts(tmp_path: Path, touched: str) -> None:
    (tmp_path / f"{STEM}.py").write_bytes(touched.encode())
    (tmp_path / f"{STEM}.ipynb").write_text(notebook("x = 1"))
    attempt = read(tmp_path)
    assert (attempt.name, attempt.source, attempt.note) == (f"{STEM}.ipynb", "x = 1\n", "")


@pytest.mark.parametrize("stub", [STUB, None], ids=["a touched script", "a script where the stub is not known"])
def test_beside_a_notebook_a_script_counts_and_the_student_is_told(tmp_path: Path, stub: str | None) -> None:
    (tmp_path / f"{STEM}.py").write_text("x = 2\n")
    (tmp_path / f"{STEM}.ipynb").write_text(notebook("x = 1"))
    attempt = read(tmp_path, stub)
    assert (attempt.name, attempt.source) == (f"{STEM}.py", "x = 2\n")
    assert attempt.note == f"Both {STEM}.py and {STEM}.ipynb were worked on: the .py counts."


def test_beside_an_untouched_notebook_a_script_counts_and_nothing_needs_to_be_said(tmp_path: Path) -> None:
    (tmp_path / f"{STEM}.py").write_text("x = 2\n")
    (tmp_path / f"{STEM}.ipynb").write_text(notebook(STUB))
    attempt = read(tmp_path)
    assert (attempt.name, attempt.note) == (f"{STEM}.py", "")


@pytest.mark.parametrize("other", [
    pytest.param(STUB.replace("raise", "return 1\n    raise"), id="one line more"),
    pytest.param(STUB.replace("    raise", "  raise"), id="another indent"),
    pytest.param("", id="nothing at all"),
])  # fmt: skip
def test_code_that_differs_is_told_apart_from_the_stub(other: str) -> None:
    assert code_digest(other) != code_digest(STUB)


def test_a_script_that_cannot_be_read_does_not_give_way_to_the_notebook(tmp_path: Path) -> None:
    (tmp_path / f"{STEM}.py").symlink_to("nowhere")
    (tmp_path / f"{STEM}.ipynb").write_text(notebook("x = 1"))
    attempt = read(tmp_path)
    assert attempt.name == f"{STEM}.py"
    assert attempt.problem


def test_a_million_cells_are_never_parsed(tmp_path: Path) -> None:
    cells = '{"cell_type":"code","source":""},' * 1_000_000
    (tmp_path / f"{STEM}.ipynb").write_text(f'{{"cells":[{cells[:-1]}]}}')
    clear = "Clear its outputs (Edit, Clear Outputs of All Cells), and save it."
    assert read(tmp_path).problem == f"{STEM}.ipynb is larger than {8 * KIB} KiB. {clear}"


def test_pictures_and_outputs_of_a_notebook_are_not_counted_as_code(tmp_path: Path) -> None:
    whole = json.loads(notebook("x = 1"))
    whole["cells"][0]["outputs"] = [{"output_type": "display_data", "data": {"image/png": "A" * 4 * 1024 * KIB}}]
    (tmp_path / f"{STEM}.ipynb").write_text(json.dumps(whole))
    assert (read(tmp_path).problem, read(tmp_path).source) == ("", "x = 1\n")


def test_as_many_cells_as_fit_are_still_too_many(tmp_path: Path) -> None:
    cells = '{"cell_type":"code","source":""},' * 30_000
    (tmp_path / f"{STEM}.ipynb").write_text(f'{{"cells":[{cells[:-1]}]}}')
    assert read_attempt(tmp_path, STEM, None, 1024).problem == "This notebook has 30000 cells; at most 2000 are read."


def test_the_digest_tells_attempts_apart_and_nothing_else(tmp_path: Path) -> None:
    attempt = AttemptSource("a.py", "x = 1\n")
    assert attempt.digest == AttemptSource("a.py", "x = 1\n", note="another note").digest
    others = [
        AttemptSource("b.py", "x = 1\n"),
        AttemptSource("a.py", "x = 2\n"),
        AttemptSource("a.py", problem="x"),
        AttemptSource("a.py", "x = 1\n", cells=(1,)),
        AttemptSource("a.py"),
        AttemptSource("a.py", missing=True),
    ]
    assert len({attempt.digest, *(other.digest for other in others)}) == 7


@pytest.mark.parametrize(("name", "text"), [
    pytest.param(f"{STEM}.py", "x = 1\n@\nraise LookupError\n", id="a script"),
    pytest.param(f"{STEM}.ipynb", notebook("x = 1\n@"), id="a notebook"),
])  # fmt: skip
def test_a_line_beyond_any_honest_one_is_not_read_and_the_student_is_told_why(
    tmp_path: Path, name: str, text: str
) -> None:
    """A line number is told: over 90,000 lines an attempt could choose one that spells a hidden input."""
    fill = "\n" if name.endswith(".py") else "\\n"
    (tmp_path / name).write_text(text.replace("@", fill * (LINE_LIMIT - 10)))
    assert not read(tmp_path).problem
    (tmp_path / name).write_text(text.replace("@", fill * LINE_LIMIT))
    attempt = read(tmp_path)
    assert attempt.problem.startswith(f"{name} has 5,0")
    assert "at most 5,000 are read: feedback tells the line of a mistake" in attempt.problem
    assert attempt.source == ""
