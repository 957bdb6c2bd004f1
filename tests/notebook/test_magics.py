"""The extension in a real kernel: one notebook, as a student runs it, and what its cells show."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

TINY = Path(__file__).parents[1] / "tiny_course"
REPOSITORY = Path(__file__).parents[2]
CELLS = {
    "setup": "import torch\n_ = torch.manual_seed(1)",
    "wrong": "def running_mean(x):\n    if len(x) == 0:\n        raise ValueError\n    return x.cumsum(0) / len(x)  # <script>alert(1)</script>",
    "load": "%load_ext manyheads",
    "check": "%check",
    "hint": "%hint",
    "hint again": "%hint running_mean",
    "trace": "%trace running_mean running_mean --values",
    "plot": "%plot 01",
    "unknown": "%check median",
    "option": "%trace --loud",
    "no function": "%trace running_mean median",
    "random": "print(torch.rand(()).item())",
    "right": "def running_mean(x):\n    if len(x) == 0:\n        raise ValueError\n    return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype)",
    "check right": "%check",
    "hint right": "%hint",
    "ask unsaved": "%ask",
    "save": "import pathlib; _ = pathlib.Path('01_running_mean.ipynb').write_text(pathlib.Path('right.ipynb').read_text())",
    "ask": "%ask",
    "answer": "%ask AAAAA",
}  # fmt: skip


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What each cell shows: its HTML and its text, or what it printed."""
    folder = tmp_path_factory.mktemp("class") / "mine"
    shutil.copytree(TINY / "exercises", folder / "exercises")
    shutil.copy(TINY / "course.yaml", folder)
    right = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"import torch\n\n{CELLS['right']}")])
    nbformat.write(right, folder / "exercises" / "averages" / "right.ipynb")
    head = nbformat.v4.new_code_cell(f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})")
    cells = [head, *(nbformat.v4.new_code_cell(source) for source in CELLS.values())]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(folder / "exercises" / "averages")}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()
    assert (folder / ".course" / "hints.json").exists()
    return {name: _of(cell) for name, cell in zip(CELLS, cells[1:], strict=True)}


def _of(cell: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for output in cell.outputs:
        assert output.output_type in ("display_data", "stream"), output
        found |= {"printed": output.text} if output.output_type == "stream" else dict(output.data)
    return found


def test_check_shows_what_course_check_prints_with_its_hint_folded(shown: dict[str, dict[str, str]]) -> None:
    text, html = shown["check"]["text/plain"], shown["check"]["text/html"]
    assert text.startswith("✗ 01 The running mean")
    assert "  ✗ running_mean: You divided by the length of x everywhere." in text.splitlines()
    assert "<details" in html
    assert html.index("<summary") < html.index("How many numbers are in the mean at position 0?")


def test_hint_goes_one_step_further_each_time(shown: dict[str, dict[str, str]]) -> None:
    first, second = (shown[name]["text/plain"].splitlines() for name in ("hint", "hint again"))
    assert first[1:] == ["Hint 1 of 3: How many numbers are in the mean at position 0?", "Next: %hint running_mean"]
    assert second[1].startswith("Hint 2 of 3: ")


def test_trace_names_the_cell_and_escapes_the_students_text(shown: dict[str, dict[str, str]]) -> None:
    text, html = shown["trace"]["text/plain"], shown["trace"]["text/html"]
    assert text.splitlines()[2] == "  In[3] 4  return x.cumsum(0) / len(x)  # <script>alert(1)</script>"
    assert "✗ returns (T): the right shape, other numbers" in text
    assert "run_line_magic" not in text
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_plot_shows_one_thing_panel_by_panel_with_its_words(shown: dict[str, dict[str, str]]) -> None:
    html = shown["plot"]["text/html"]
    assert [part.split('"')[0] for part in html.split('<img alt="')[1:]] == ["expected", "yours", "yours − expected"]
    assert html.count('src="data:image/svg+xml;base64,') == 3
    assert html.count("<details open") == 1
    assert "<summary" in html
    assert "running_mean(x): the largest difference is " in html
    assert shown["plot"]["text/plain"].startswith("running_mean(x): the largest difference is ")


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("unknown", "course: there is no exercise 'median'; there are: running_mean. Next: %check running_mean"),
        ("option", "course: %trace knows no --loud. Next: %trace?"),
        (
            "no function",
            "course: running_mean has no 'median' to trace; it has: running_mean. Next: %trace running_mean",
        ),
    ],
)
def test_wrong_usage_is_one_sentence(shown: dict[str, dict[str, str]], cell: str, says: str) -> None:
    assert shown[cell]["text/plain"] == says


def test_a_students_random_numbers_are_left_alone(shown: dict[str, dict[str, str]]) -> None:
    import torch

    generator = torch.Generator().manual_seed(1)
    assert float(shown["random"]["printed"]) == torch.rand((), generator=generator).item()


def test_what_is_right_is_told_so_and_needs_no_hint(shown: dict[str, dict[str, str]]) -> None:
    assert shown["check right"]["text/plain"].startswith("✓ 01 The running mean")
    assert shown["hint right"]["text/plain"] == "running_mean needs no hint: every check passes."


def test_questions_are_about_the_saved_notebook_and_named_by_its_cells(shown: dict[str, dict[str, str]]) -> None:
    unsaved = "course: nothing in 01_running_mean.ipynb as it was saved can be asked about. Next: save it, then %ask"
    assert shown["ask unsaved"]["text/plain"] == unsaved
    asked, said = shown["ask"]["text/plain"], shown["answer"]["text/plain"]
    assert asked.count("Question ") == 5
    assert " of code cell 1" in asked
    assert "It is " not in asked
    assert said.count("✓ ") + said.count("✗ ") == 5
    assert [line for line in said.splitlines() if line.startswith("Question ")] == [
        line for line in asked.splitlines() if line.startswith("Question ")
    ]
