"""`leaks` finds lines of a solution, and the course's secret, in files of all types."""

import io
import json
import re
import zipfile

import pytest
import safetensors.torch
import torch

from manyheads.authoring.make_stub import leaks
from manyheads.course import load_course
from tests.make import cases

SOURCE = "solutions/averages/01_running_mean.py"
SOLUTION = "return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)"
QUOTED_LINE = 'raise ValueError("x has 0 numbers; at least 1 is needed")'


def script_with_line(line: str) -> bytes:
    """Return a script that contains this line."""
    return f"import torch\n\n\ndef running_mean(x):\n    {line}\n".encode()


def notebook_with_line(line: str, cell_type: str = "code") -> bytes:
    """Return a notebook with a cell that contains this line."""
    source = ["import torch\n", f"{line}\n", "x = 1"]
    return json.dumps(
        {"cells": [{"cell_type": cell_type, "metadata": {}, "source": source}]}
    ).encode()


def fingerprint_with_line(line: str) -> bytes:
    """Return a fingerprint file with a hint that contains this line."""
    body = {
        "content": {
            "words": {"counts_all": {"hints": ["Look.", f"It should be: {line}", "Think."]}}
        }
    }
    return safetensors.torch.save({"t0000": torch.zeros(3)}, metadata={"body": json.dumps(body)})


def wheel_with_line(line: str) -> bytes:
    """Return a wheel with a script that contains this line."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("engine/a.py", script_with_line(line))
    return out.getvalue()


@cases("line", {"of a solution": SOLUTION, "of a solution, with quotes": QUOTED_LINE})
@cases(
    "name, write",
    {
        "in a script": ("a/01_x.py", script_with_line),
        "in a notebook's code": ("a/01_x.ipynb", notebook_with_line),
        "in a notebook's words": (
            "a/01_x.ipynb",
            lambda line: notebook_with_line(line, "markdown"),
        ),
        "in a fingerprint file": ("a/fingerprints/01_x.safetensors", fingerprint_with_line),
        "in a member of the wheel": ("engine.whl: engine/a.py", wheel_with_line),
    },
)
def test_a_line_of_a_solution_is_found_in_every_file_type(tiny, name, write, line):
    file = name.partition(":")[0]
    assert leaks(tiny, {file: write("x = 1")}) == ()
    (sentence,) = leaks(tiny, {"clean.py": b"x = 1\n", file: write(line)})
    assert sentence == f"{name} holds a hidden line: {line!r} of {SOURCE}"


@cases(
    "text",
    {
        "without the blanks that Python can spare": re.sub(r" ?(\W) ?", r"\1", SOLUTION),
        "with more blanks": SOLUTION.replace(" ", "   "),
        "indented, with a comment behind it": f"        {SOLUTION}  # as we know",
        "as a comment": f"# {SOLUTION}",
        "as an example": f">>> {SOLUTION}",
        "over several lines": SOLUTION.replace(", dtype", ",\n    dtype"),
        "in the middle of a sentence": f'"""Write {SOLUTION}, and be done."""',
        "in a text with escaped line breaks": json.dumps(f"x = 1\n{SOLUTION}\n"),
        "in other quotes": QUOTED_LINE.replace('"', "'"),
    },
)
def test_a_line_in_another_layout_is_found(tiny, text):
    assert len(leaks(tiny, {"a.py": script_with_line(text)})) == 1


@pytest.mark.parametrize("name", ["solutions/a/01_x.py", "grader/right/x.py", ".course/secret"])
def test_files_of_the_instructor_are_always_reported(tiny, name):
    assert leaks(tiny, {name: b""}) == (f"{name} is the instructor's alone",)
    assert leaks(tiny, {f"docs/{name}": b""}) == ()


def test_the_secret_is_found_in_a_binary_file(tiny_copy):
    secret = b"5ec2e7" * 10
    (tiny_copy / ".course").mkdir(exist_ok=True)
    (tiny_copy / ".course" / "secret").write_bytes(secret + b"\n")
    course = load_course(tiny_copy)
    assert leaks(course, {"a.bin": b"\0" + secret[1:]}) == ()
    assert leaks(course, {"a.bin": b"\0" + secret + b"\0"}) == ("a.bin holds the course's secret",)


MEANS = "means = x.cumsum(0).mT"


@pytest.mark.parametrize(
    ("line", "text", "lesson_text", "is_leak"),
    [
        pytest.param(MEANS, f"So {MEANS}, as we know.\n", "", True, id="a line in a sentence"),
        pytest.param(
            MEANS,
            f"So {MEANS}ranspose, as we know.\n",
            "",
            False,
            id="a line that ends inside a word",
        ),
        pytest.param(
            MEANS,
            f"{MEANS}\n",
            f"# %% [markdown]\n# Never write {MEANS} here.\n\n",
            False,
            id="a line that the stub has",
        ),
        *(
            pytest.param(line, f"{line}\n", "", False, id=line)
            for line in ("y = sums @ tri", "super().__init__()", "# the mean of all that came")
        ),
    ],
)
def test_short_and_common_lines_of_a_solution_are_not_leaks(
    tiny_copy, line, text, lesson_text, is_leak
):
    path = tiny_copy / SOURCE
    source = path.read_text(encoding="utf-8").replace(
        "    ### END SOLUTION", f"    {line}\n    ### END SOLUTION"
    )
    path.write_text(f"{lesson_text}{source}", encoding="utf-8")
    assert bool(leaks(load_course(tiny_copy), {"a.md": text.encode()})) is is_leak


def test_everyday_lines_are_not_leaks(tiny):
    everyday = (
        "import torch",
        "def running_mean(x):",
        "return out",
        "else:",
        "x = 1",
        "import torch  # the tensors",
    )
    assert leaks(tiny, {"a.py": "\n".join(everyday).encode()}) == ()
