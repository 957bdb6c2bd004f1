"""No hidden line is released: one planted in any kind of file is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from grader.authoring.leaks import leaks
from grader.course import Course, load_course

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
    assert sentence == f"{name} holds a hidden line: {''.join(line.split())!r}"


@pytest.mark.parametrize(
    "disguise",
    [
        pytest.param(lambda line: line.replace(" ", ""), id="without blanks"),
        pytest.param(lambda line: line.replace(" ", "   "), id="with more blanks"),
        pytest.param(lambda line: f"        {line}  # as we know", id="deeper, with a remark behind it"),
        pytest.param(lambda line: f"# {line}", id="as a remark"),
        pytest.param(lambda line: f">>> {line}", id="as an example"),
        pytest.param(
            lambda line: line.replace(" / ", "  # over\n        / ").replace(", dtype", ",\n    dtype"),
            id="over several lines",
        ),
        pytest.param(lambda line: f'"""Write {line}, and be done."""', id="in the middle of a sentence"),
    ],
)
def test_another_layout_hides_nothing(tiny: Course, disguise: Callable[[str], str]) -> None:
    assert len(leaks(tiny, {"a.py": script(disguise(SOLUTION))})) == 1


@pytest.mark.parametrize(
    "line", ["    total = source.cumsum(0)", "# total = source.cumsum(0)", "> * total=source.cumsum(0)"]
)
def test_a_short_line_is_found_where_it_stands_alone(tiny: Course, line: str) -> None:
    assert len(leaks(tiny, {"a.md": f"{line}\n".encode()})) == 1
    assert leaks(tiny, {"a.md": f"we said {line}\n".encode()}) == ()


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
    assert leaks(tiny, {name: b"\xff\0 not JSON"}) == ()
    assert len(leaks(tiny, {name: b"\xff\0 not JSON\n" + SOLUTION.encode()})) == 1


@pytest.mark.parametrize("name", ["solutions/a/01_x.py", "grader/hidden/tables/x.safetensors", ".course/secret"])
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


def test_what_is_released_today_is_clean(tiny: Course) -> None:
    folder = tiny.root / "exercises"
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert len(files) == 3
    assert leaks(tiny, files) == ()


def test_what_everybody_writes_is_not_hidden(tiny: Course) -> None:
    everyday = ("import torch", "def running_mean(x):", "return out", "else:", "x = 1", "import torch  # the tensors")
    assert leaks(tiny, {"a.py": "\n".join(everyday).encode()}) == ()
