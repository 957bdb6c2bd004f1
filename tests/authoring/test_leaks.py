"""No hidden line is released: one planted in any kind of file is found."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from manyheads.authoring.leaks import leaks
from manyheads.course import Course, load_course
from tests.authoring.knobs import KNOBS


@pytest.fixture
def tiny_copy(tiny_copy: Path) -> Path:
    """With mutants that have lines of their own."""
    (tiny_copy / "grader" / "misconceptions" / "running_mean.py").write_text(KNOBS, encoding="utf-8")
    return tiny_copy


@pytest.fixture
def tiny(tiny_copy: Path) -> Course:
    return load_course(tiny_copy)


SOLUTION = "return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)"
REFUSAL = 'raise ValueError("x has 0 numbers; at least 1 is needed")'
MUTANT = "mean = total / (seen if count == 'so_far' else max(len(x), 1) if count == 'all' else 1)".replace("'", '"')
CHECK = "got, want = (c.asking(cotangent=g).call('running_mean', x) for c in (attempt, reference))".replace("'", '"')
RIGHT = "lower = torch.tril(torch.ones(len(x), len(x), dtype=x.dtype))"

LINES = [
    pytest.param(SOLUTION, id="of a solution"),
    pytest.param(REFUSAL, id="of a solution, with quotes"),
    pytest.param(MUTANT, id="of a mutant"),
    pytest.param(CHECK, id="of a check"),
    pytest.param(RIGHT, id="of a right attempt"),
]


def script(line: str) -> bytes:
    return f"import torch\n\n\ndef running_mean(x):\n    {line}\n".encode()


def notebook(line: str, kind: str = "code") -> bytes:
    source = ["import torch\n", f"{line}\n", "x = 1"]
    return json.dumps({"cells": [{"cell_type": kind, "metadata": {}, "source": source}]}).encode()


def fingerprint(line: str) -> bytes:
    body = {"content": {"words": {"counts_all": {"hints": ["Look.", f"It should be: {line}", "Think."]}}}}
    return safetensors.torch.save({"t0000": torch.zeros(3)}, metadata={"body": json.dumps(body)})


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    ("name", "write"),
    [
        pytest.param("a/01_x.py", script, id="in a script"),
        pytest.param("a/01_x.ipynb", notebook, id="in a notebook's code"),
        pytest.param("a/01_x.ipynb", lambda line: notebook(line, "markdown"), id="in a notebook's words"),
        pytest.param("a/fingerprints/01_x.safetensors", fingerprint, id="in a fingerprint file"),
    ],
)
def test_a_planted_line_is_found(tiny: Course, name: str, write: Callable[[str], bytes], line: str) -> None:
    assert leaks(tiny, {name: write("x = 1")}) == ()
    (sentence,) = leaks(tiny, {"clean.py": b"x = 1\n", name: write(line)})
    assert re.fullmatch(rf"{name}(:\d+)? holds a hidden line: {re.escape(repr(line))} of [\w/]+\.py", sentence)


@pytest.mark.parametrize(
    "disguise",
    [
        pytest.param(lambda line: re.sub(r" ?(\W) ?", r"\1", line), id="without the blanks that Python can spare"),
        pytest.param(lambda line: line.replace(" ", "   "), id="with more blanks"),
        pytest.param(lambda line: f"        {line}  # as we know", id="deeper, with a remark behind it"),
        pytest.param(lambda line: f"# {line}", id="as a remark"),
        pytest.param(lambda line: f">>> {line}", id="as an example"),
        pytest.param(
            lambda line: line.replace(" / ", "  # over\n        / ").replace(", dtype", ",\n    dtype"),
            id="over several lines",
        ),
        pytest.param(
            lambda line: f"# {line}".replace("arange(", "arange(\n    # "), id="as a remark over several lines"
        ),
        pytest.param(lambda line: f'"""Write {line}, and be done."""', id="in the middle of a sentence"),
    ],
)
def test_another_layout_hides_nothing(tiny: Course, disguise: Callable[[str], str]) -> None:
    assert len(leaks(tiny, {"a.py": script(disguise(SOLUTION))})) == 1


@pytest.mark.parametrize(
    ("name", "before"),
    [
        pytest.param("a.py", "import torch\n\n", id="of a script"),
        pytest.param("a.ipynb", '{"cells": [\n\n', id="of a notebook"),
    ],
)
def test_a_sentence_says_which_line_of_which_file_and_where_it_is_from(tiny: Course, name: str, before: str) -> None:
    (sentence,) = leaks(tiny, {name: f'{before}["{SOLUTION}"] ]}}\n\n'.encode()})
    assert sentence == f"{name}:3 holds a hidden line: {SOLUTION!r} of solutions/averages/01_running_mean.py"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("        hint: y = y.transpose(1, 2).reshape(B, T, C)\n", id="of 33 characters"),
        pytest.param("        hint: y = weights @ v\n", id="of 11 characters"),
    ],
)
def test_a_line_of_the_real_course_is_found_in_a_hint(repository: Path, text: str) -> None:
    """As it once was released."""
    (sentence,) = leaks(load_course(repository), {"course.yaml": text.encode()})
    assert "course.yaml:1 holds a hidden line: 'y = " in sentence


# How a file is kept


def test_other_quotes_hide_nothing(tiny: Course) -> None:
    assert "'" not in REFUSAL
    assert len(leaks(tiny, {"a.py": script(REFUSAL.replace('"', "'"))})) == 1


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param({"source": [], "outputs": [{"text": ["1\n", f"    {SOLUTION}\n"]}]}, id="an output"),
        pytest.param(
            {"source": [], "outputs": [{"data": {"text/html": f"<b>{SOLUTION}</b>"}}]}, id="an output in HTML"
        ),
        pytest.param({"source": [], "metadata": {"solution": SOLUTION}}, id="metadata"),
        pytest.param({"source": f"x = 1\n{SOLUTION}\n"}, id="a source that is one text"),
        pytest.param({"source": [SOLUTION[:30], SOLUTION[30:]]}, id="a line in two pieces"),
    ],
)
def test_a_notebook_hides_nothing_anywhere(tiny: Course, cell: dict[str, object]) -> None:
    notebook = {"cells": [{"cell_type": "code", "metadata": {}, **cell}], "metadata": {}}
    assert len(leaks(tiny, {"a.ipynb": json.dumps(notebook).encode()})) == 1


@pytest.mark.parametrize("name", ["a.ipynb", "a.json", "a.safetensors", "a.png"])
def test_a_file_that_is_not_what_its_name_says_is_compared_as_it_stands(tiny: Course, name: str) -> None:
    assert leaks(tiny, {name: b"\xff not JSON"}) == ()
    assert len(leaks(tiny, {name: b"\xff not JSON\n" + SOLUTION.encode()})) == 1


@pytest.mark.parametrize("write", [notebook, fingerprint, lambda line: f"<p>{line}</p>".encode()])
def test_a_file_under_another_name_is_what_it_is(tiny: Course, write: Callable[[str], bytes]) -> None:
    assert leaks(tiny, {"notes.txt": write("x = 1")}) == ()
    assert len(leaks(tiny, {"notes.txt": write(REFUSAL)})) == 1


def test_a_packed_file_is_looked_into(tiny: Course) -> None:
    (sentence,) = leaks(tiny, {"a.gz": gzip.compress(script(SOLUTION))})
    assert sentence.startswith("a.gz:5 holds a hidden line: ")


def test_a_file_that_cannot_be_read_is_refused(tiny: Course) -> None:
    assert leaks(tiny, {"a.bin": bytes(range(256))}) == ("a.bin cannot be read: it is neither text nor an archive",)


# Whole files


HIDDEN = [
    *(f"grader/{name}" for name in (
        "checks/conftest.py",
        "texts.yaml",
        "wrong/running_mean/median.py",
    )),
]  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN)
def test_a_copy_of_a_hidden_file_is_found_under_any_name(tiny: Course, name: str) -> None:
    content = (tiny.root / name).read_bytes()
    assert leaks(tiny, {"notes": content}) == (f"notes is a copy of {name}",)
    assert leaks(tiny, {"notes.gz": gzip.compress(content)}) == (f"notes.gz is a copy of {name}",)


def test_other_blanks_and_another_encoding_make_no_other_file(tiny: Course) -> None:
    words = (tiny.root / HIDDEN[2]).read_text(encoding="utf-8").replace("  ", "    ").replace("\n", "\r\n")
    assert leaks(tiny, {"notes.yaml": words.encode("utf-16")}) == (f"notes.yaml is a copy of {HIDDEN[2]}",)


def test_an_empty_hidden_file_is_no_secret(tiny_copy: Path) -> None:
    (tiny_copy / "grader" / "__init__.py").write_text("\n")
    assert leaks(load_course(tiny_copy), {"a.py": b""}) == ()


@pytest.mark.parametrize("name", ["solutions/a/01_x.py", "grader/right/x.py", ".course/secret"])
def test_the_instructors_files_are_never_released_whatever_they_hold(tiny: Course, name: str) -> None:
    assert leaks(tiny, {name: b""}) == (f"{name} is the instructor's alone",)
    assert leaks(tiny, {f"docs/{name}": b""}) == ()


def test_the_secret_is_found_in_any_kind_of_file(tiny_copy: Path) -> None:
    secret = b"5ec2e7" * 10
    (tiny_copy / ".course").mkdir(exist_ok=True)
    (tiny_copy / ".course" / "secret").write_bytes(secret + b"\n")
    course = load_course(tiny_copy)
    assert leaks(course, {"a.bin": b"\0" + secret[1:]}) == ()
    assert leaks(course, {"a.bin": b"\0" + secret + b"\0"}) == ("a.bin holds the course's secret",)
    assert leaks(course, {"a.gz": gzip.compress(secret)}) == ("a.gz holds the course's secret",)


def test_what_is_released_today_is_clean(tiny: Course) -> None:
    folder = tiny.root / "exercises"
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert len(files) == 3
    assert leaks(tiny, files) == ()


def test_what_everybody_writes_is_not_hidden(tiny: Course) -> None:
    everyday = ("import torch", "def running_mean(x):", "return out", "else:", "x = 1", "import torch  # the tensors")
    assert leaks(tiny, {"a.py": "\n".join(everyday).encode()}) == ()
