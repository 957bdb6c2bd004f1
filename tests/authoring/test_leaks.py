"""No line of a solution is released: one planted in any kind of file is found, and what everybody
writes is not.
"""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from manyheads.authoring.make_stub import leaks
from manyheads.course import Course, load_course

SOURCE = "solutions/averages/01_running_mean.py"
SOLUTION = "return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)"
REFUSAL = 'raise ValueError("x has 0 numbers; at least 1 is needed")'


def script(line: str) -> bytes:
    return f"import torch\n\n\ndef running_mean(x):\n    {line}\n".encode()


def notebook(line: str, cell_type: str = "code") -> bytes:
    source = ["import torch\n", f"{line}\n", "x = 1"]
    return json.dumps(
        {"cells": [{"cell_type": cell_type, "metadata": {}, "source": source}]}
    ).encode()


def fingerprint(line: str) -> bytes:
    body = {
        "content": {
            "words": {"counts_all": {"hints": ["Look.", f"It should be: {line}", "Think."]}}
        }
    }
    return safetensors.torch.save({"t0000": torch.zeros(3)}, metadata={"body": json.dumps(body)})


def wheel(line: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("engine/a.py", script(line))
    return out.getvalue()


@pytest.mark.parametrize(
    "line", [SOLUTION, REFUSAL], ids=["of a solution", "of a solution, with quotes"]
)
@pytest.mark.parametrize(
    ("name", "write"),
    [
        pytest.param("a/01_x.py", script, id="in a script"),
        pytest.param("a/01_x.ipynb", notebook, id="in a notebook's code"),
        pytest.param(
            "a/01_x.ipynb", lambda line: notebook(line, "markdown"), id="in a notebook's words"
        ),
        pytest.param("a/fingerprints/01_x.safetensors", fingerprint, id="in a fingerprint file"),
        pytest.param("engine.whl: engine/a.py", wheel, id="in a member of the wheel"),
    ],
)
def test_a_planted_line_is_found(
    tiny: Course, name: str, write: Callable[[str], bytes], line: str
) -> None:
    file = name.partition(":")[0]
    assert leaks(tiny, {file: write("x = 1")}) == ()
    (sentence,) = leaks(tiny, {"clean.py": b"x = 1\n", file: write(line)})
    assert sentence == f"{name} holds a hidden line: {line!r} of {SOURCE}"


@pytest.mark.parametrize(
    ("line", "disguise"),
    [
        pytest.param(
            SOLUTION,
            lambda line: re.sub(r" ?(\W) ?", r"\1", line),
            id="without the blanks that Python can spare",
        ),
        pytest.param(SOLUTION, lambda line: line.replace(" ", "   "), id="with more blanks"),
        pytest.param(
            SOLUTION,
            lambda line: f"        {line}  # as we know",
            id="deeper, with a remark behind it",
        ),
        pytest.param(SOLUTION, lambda line: f"# {line}", id="as a remark"),
        pytest.param(SOLUTION, lambda line: f">>> {line}", id="as an example"),
        pytest.param(
            SOLUTION, lambda line: line.replace(", dtype", ",\n    dtype"), id="over several lines"
        ),
        pytest.param(
            SOLUTION,
            lambda line: f'"""Write {line}, and be done."""',
            id="in the middle of a sentence",
        ),
        pytest.param(
            SOLUTION,
            lambda line: json.dumps(f"x = 1\n{line}\n"),
            id="in a text with escaped line breaks",
        ),
        pytest.param(REFUSAL, lambda line: line.replace('"', "'"), id="in other quotes"),
    ],
)
def test_another_layout_hides_nothing(
    tiny: Course, line: str, disguise: Callable[[str], str]
) -> None:
    assert len(leaks(tiny, {"a.py": script(disguise(line))})) == 1


@pytest.mark.parametrize("name", ["solutions/a/01_x.py", "grader/right/x.py", ".course/secret"])
def test_the_instructors_files_are_never_released_whatever_they_hold(
    tiny: Course, name: str
) -> None:
    assert leaks(tiny, {name: b""}) == (f"{name} is the instructor's alone",)
    assert leaks(tiny, {f"docs/{name}": b""}) == ()


def test_the_secret_is_found_in_any_kind_of_file(tiny_copy: Path) -> None:
    secret = b"5ec2e7" * 10
    (tiny_copy / ".course").mkdir(exist_ok=True)
    (tiny_copy / ".course" / "secret").write_bytes(secret + b"\n")
    course = load_course(tiny_copy)
    assert leaks(course, {"a.bin": b"\0" + secret[1:]}) == ()
    assert leaks(course, {"a.bin": b"\0" + secret + b"\0"}) == ("a.bin holds the course's secret",)


MEANS = "means = x.cumsum(0).mT"


@pytest.mark.parametrize(
    ("line", "text", "lesson", "leaked"),
    [
        pytest.param(MEANS, f"So {MEANS}, as we know.\n", "", True, id="a line in a sentence"),
        pytest.param(
            MEANS,
            f"So {MEANS}ranspose, as we know.\n",
            "",
            False,
            id="a line that ends where no word ends",
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
def test_a_line_of_a_solution_is_a_secret_unless_it_is_short_or_everybody_has_it(
    tiny_copy, line, text, lesson, leaked
):
    path = tiny_copy / SOURCE
    source = path.read_text(encoding="utf-8").replace(
        "    ### END SOLUTION", f"    {line}\n    ### END SOLUTION"
    )
    path.write_text(f"{lesson}{source}", encoding="utf-8")
    assert bool(leaks(load_course(tiny_copy), {"a.md": text.encode()})) is leaked


def test_what_everybody_writes_is_not_hidden(tiny: Course) -> None:
    everyday = (
        "import torch",
        "def running_mean(x):",
        "return out",
        "else:",
        "x = 1",
        "import torch  # the tensors",
    )
    assert leaks(tiny, {"a.py": "\n".join(everyday).encode()}) == ()
