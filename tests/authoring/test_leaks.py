"""No line of a solution is released: one planted in any kind of file is found, and what everybody writes is not."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from manyheads.authoring.leaks import leaks
from manyheads.course import Course, load_course

SOURCE = "solutions/averages/01_running_mean.py"
SOLUTION = "return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)"
REFUSAL = 'raise ValueError("x has 0 numbers; at least 1 is needed")'

LINES = [pytest.param(SOLUTION, id="of a solution"), pytest.param(REFUSAL, id="of a solution, with quotes")]


def script(line: str) -> bytes:
    return f"import torch\n\n\ndef running_mean(x):\n    {line}\n".encode()


def notebook(line: str, kind: str = "code") -> bytes:
    source = ["import torch\n", f"{line}\n", "x = 1"]
    return json.dumps({"cells": [{"cell_type": kind, "metadata": {}, "source": source}]}).encode()


def fingerprint(line: str) -> bytes:
    body = {"content": {"words": {"counts_all": {"hints": ["Look.", f"It should be: {line}", "Think."]}}}}
    return safetensors.torch.save({"t0000": torch.zeros(3)}, metadata={"body": json.dumps(body)})


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(("name", "write"), [
    pytest.param("a/01_x.py", script, id="in a script"),
    pytest.param("a/01_x.ipynb", notebook, id="in a notebook's code"),
    pytest.param("a/01_x.ipynb", lambda line: notebook(line, "markdown"), id="in a notebook's words"),
    pytest.param("a/fingerprints/01_x.safetensors", fingerprint, id="in a fingerprint file"),
])  # fmt: skip
def test_a_planted_line_is_found(tiny: Course, name: str, write: Callable[[str], bytes], line: str) -> None:
    assert leaks(tiny, {name: write("x = 1")}) == ()
    (sentence,) = leaks(tiny, {"clean.py": b"x = 1\n", name: write(line)})
    assert sentence == f"{name} holds a hidden line: {line!r} of {SOURCE}"


@pytest.mark.parametrize("disguise", [
    pytest.param(lambda line: re.sub(r" ?(\W) ?", r"\1", line), id="without the blanks that Python can spare"),
    pytest.param(lambda line: line.replace(" ", "   "), id="with more blanks"),
    pytest.param(lambda line: f"        {line}  # as we know", id="deeper, with a remark behind it"),
    pytest.param(lambda line: f"# {line}", id="as a remark"),
    pytest.param(lambda line: f">>> {line}", id="as an example"),
    pytest.param(lambda line: line.replace(", dtype", ",\n    dtype"), id="over several lines"),
    pytest.param(lambda line: f'"""Write {line}, and be done."""', id="in the middle of a sentence"),
    pytest.param(lambda line: json.dumps(f"x = 1\n{line}\n"), id="in a text with escaped line breaks"),
])  # fmt: skip
def test_another_layout_hides_nothing(tiny: Course, disguise: Callable[[str], str]) -> None:
    assert len(leaks(tiny, {"a.py": script(disguise(SOLUTION))})) == 1


def test_other_quotes_hide_nothing(tiny: Course) -> None:
    assert "'" not in REFUSAL
    assert len(leaks(tiny, {"a.py": script(REFUSAL.replace('"', "'"))})) == 1


def test_a_line_of_the_real_course_is_found_in_a_hint(repository: Path) -> None:
    """As it once was released."""
    text = b"        hint: y = y.transpose(1, 2).reshape(B, T, C)\n"
    (sentence,) = leaks(load_course(repository), {"course.yaml": text})
    assert sentence.startswith("course.yaml holds a hidden line: 'y = ")


def test_a_member_of_the_wheel_is_looked_into(tiny: Course) -> None:
    def wheel(line: str) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("engine/a.py", script(line))
        return out.getvalue()

    assert leaks(tiny, {"engine.whl": wheel("x = 1")}) == ()
    (sentence,) = leaks(tiny, {"engine.whl": wheel(SOLUTION)})
    assert sentence.startswith("engine.whl: engine/a.py holds a hidden line: ")


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


def test_what_is_released_today_is_clean(tiny: Course) -> None:
    folder = tiny.root / "exercises"
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert len(files) == 3
    assert leaks(tiny, files) == ()


def test_what_everybody_writes_is_not_hidden(tiny: Course) -> None:
    everyday = ("import torch", "def running_mean(x):", "return out", "else:", "x = 1", "import torch  # the tensors")
    assert leaks(tiny, {"a.py": "\n".join(everyday).encode()}) == ()


def found(folder: Path, line: str, text: str, lesson: str = "") -> bool:
    """Whether this text would give away a solution with this line. lesson: what the stub says."""
    path = folder / SOURCE
    source = path.read_text(encoding="utf-8").replace("    ### END SOLUTION", f"    {line}\n    ### END SOLUTION")
    path.write_text(f"{lesson}{source}", encoding="utf-8")
    return bool(leaks(load_course(folder), {"a.md": text.encode()}))


def test_a_line_ends_where_a_word_ends(tiny_copy: Path) -> None:
    assert found(tiny_copy, "means = x.cumsum(0).mT", "So means = x.cumsum(0).mT, as we know.\n")
    assert not found(tiny_copy, "means = x.cumsum(0).mT", "So means = x.cumsum(0).mTranspose, as we know.\n")


def test_a_line_that_the_stub_has_is_no_secret(tiny_copy: Path) -> None:
    line = "means = x.cumsum(0).mT"
    assert not found(tiny_copy, line, f"{line}\n", lesson=f"# %% [markdown]\n# Never write {line} here.\n\n")


@pytest.mark.parametrize("line", ["y = sums @ tri", "super().__init__()", "# the mean of all that came"])
def test_a_short_line_and_what_every_module_has_are_not_looked_for(tiny_copy: Path, line: str) -> None:
    assert not found(tiny_copy, line, f"{line}\n")
