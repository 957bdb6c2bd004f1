"""An import that works at home and not where attempts are graded is said at home."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.public.imports import unavailable_import

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("source", "line", "name"),
    [
        pytest.param("import torch\nimport matplotlib.pyplot as plt\n", 2, "matplotlib", id="a picture"),
        pytest.param("import torch, pandas\n", 1, "pandas", id="the second on a line"),
        pytest.param("from my_helpers import split\n", 1, "my_helpers", id="a file of one's own"),
        pytest.param("from scipy.special import softmax\n", 1, "scipy", id="a part of a package"),
        pytest.param("class Attention:\n    import pytest\n", 2, "pytest", id="in a class"),
    ],
)
def test_an_import_that_would_fail_is_named_with_its_line(source: str, line: int, name: str) -> None:
    assert unavailable_import(source).startswith(
        f"{name} is imported on line {line}, and is not there where attempts are graded"
    )


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            "import math, torch.nn.functional as F\nimport numpy as np\nfrom einops import rearrange\n", id="allowed"
        ),
        pytest.param("import sympy\nimport typing_extensions\n", id="what torch brings"),
        pytest.param('if __name__ == "__main__":\n    import matplotlib.pyplot as plt\n', id="below the guard"),
        pytest.param("try:\n    import matplotlib\nexcept ImportError:\n    matplotlib = None\n", id="that may fail"),
        pytest.param("def show():\n    import matplotlib\n", id="in a function that nobody calls"),
        pytest.param("import torch\nimport (\n", id="a file that is not Python"),
        pytest.param("x = '\\0'\n" + "(" * 400, id="brackets without end"),
        pytest.param("from . import sibling\n", id="a relative one, which fails at home too"),
        pytest.param("", id="nothing"),
    ],
)
def test_nothing_is_said_of_imports_that_work_or_are_not_made(source: str) -> None:
    assert unavailable_import(source) == ""


def test_every_right_attempt_imports_what_is_there(repository: Path) -> None:
    paths = list((repository / "grader" / "right").rglob("*.py"))
    assert len(paths) > 80
    assert [path.name for path in paths if unavailable_import(path.read_text(encoding="utf-8"))] == []


def test_a_students_own_check_says_it(run_course: Run, tiny_copy: Path) -> None:
    """pytest can be imported here. In the box it cannot."""
    right = (tiny_copy / "grader" / "right" / "running_mean" / "loop.py").read_text(encoding="utf-8")
    attempt = tiny_copy / "exercises" / "averages" / "01_running_mean.py"
    attempt.write_text(right, encoding="utf-8")
    assert run_course("check", "running_mean", cwd=tiny_copy).returncode == 0
    attempt.write_text(f"import pytest\n{right}", encoding="utf-8")
    done = run_course("check", "running_mean", cwd=tiny_copy)
    assert done.returncode == 1
    assert "pytest is imported on line 1, and is not there where attempts are graded" in " ".join(done.stdout.split())
    assert "Your file cannot be imported." in done.stdout
