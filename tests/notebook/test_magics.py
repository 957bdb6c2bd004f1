"""The magics in a real kernel: one notebook, as a student runs it, and what its cells show."""

import os
import re
import shutil
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.make import REPOSITORY, TINY

CELLS = {
    "setup": "import pathlib, torch\n_ = torch.manual_seed(1)",
    "wrong": (
        "def running_mean(x):\n    if len(x) == 0:\n        raise ValueError\n"
        "    return x.cumsum(0) / len(x)  # <script>alert(1)</script>"
    ),
    "load": "from manyheads.notebook import load_magics\nload_magics('running_mean')",
    "check": "%check",
    "unsaved": "%course hint",
    "save wrong": (
        "stub = pathlib.Path('01_running_mean.ipynb').read_text(); _ = "
        "pathlib.Path('01_running_mean.ipynb').write_text(pathlib.Path('wrong.ipynb')."
        "read_text())"
    ),
    "hint": "%course hint",
    "hint again": "%course hint running_mean",
    "trace": "%course trace --values",
    "plot": "%course plot",
    "status": "%course status",
    "train": "%course train --steps 5",
    "wrong usage": "%course hind",
    "unknown": "load_magics('median')\n%check",
    "known": "load_magics('running_mean')",
    "random": "print(torch.rand(()).item())",
    "right": (
        "def running_mean(x):\n    if len(x) == 0:\n        raise ValueError\n"
        "    return x.cumsum(0) / torch.arange(1, len(x) + 1, dtype=x.dtype)"
    ),
    "check right": "%check",
    "save stub": "_ = pathlib.Path('01_running_mean.ipynb').write_text(stub)",
    "ask unsaved": "%ask",
    "save": (
        "_ = pathlib.Path('01_running_mean.ipynb').write_text(pathlib.Path('right.ipynb')."
        "read_text())"
    ),
    "ask": "%ask",
    "answer": "%ask AAAAA",
    "ask by its command": "%course ask",
    "done": "%course check",
    "ended": "import shutil; shutil.rmtree('fingerprints')\n%check",
}


@pytest.fixture(scope="module")
def cell_outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What each cell shows: its HTML and its text, or what it printed."""
    folder = tmp_path_factory.mktemp("class") / "mine"
    shutil.copytree(TINY / "exercises", folder / "exercises")
    shutil.copy(TINY / "course.yaml", folder)
    for name in ("wrong", "right"):
        saved = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(f"import torch\n\n{CELLS[name]}")]
        )
        nbformat.write(saved, folder / "exercises" / "averages" / f"{name}.ipynb")
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(folder / "exercises" / "averages")}}
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute(
        env=environment
    )
    assert (folder / ".course" / "hints.json").exists()
    return {name: _outputs(cell) for name, cell in zip(CELLS, cells, strict=True)}


def _outputs(cell: Any) -> dict[str, str]:
    outputs: dict[str, str] = {}
    for output in cell.outputs:
        assert output.output_type in ("display_data", "stream"), output
        outputs |= {"printed": output.text} if output.output_type == "stream" else dict(output.data)
    return outputs


def test_check_shows_what_course_check_prints_with_its_hint_folded(
    cell_outputs,
):
    text, html = cell_outputs["check"]["text/plain"], cell_outputs["check"]["text/html"]
    assert text.startswith("✗ 01 The running mean")
    assert "  ✗ running_mean: You divided by the length of x everywhere." in text.splitlines()
    assert "<details" in html
    assert html.index("<summary") < html.index("How many numbers are in the mean at position 0?")


def test_a_command_reads_the_notebook_as_it_was_saved_and_is_about_its_exercise(cell_outputs):
    assert "Nothing is written here yet." in cell_outputs["unsaved"]["printed"]
    first, second = (cell_outputs[name]["printed"].splitlines() for name in ("hint", "hint again"))
    # the first stands with %check
    assert [line for line in first if line.startswith("Hint 2 of 3: ")]
    assert [line for line in second if line.startswith("Hint 3 of 3: ")]
    trace = cell_outputs["trace"]["printed"]
    assert "cell 1, 6 return x.cumsum(0) / len(x) # <script>alert(1)</script>" in " ".join(
        trace.split()
    )
    assert "✗ returns (T): the right shape, other numbers" in trace
    assert "The running mean" in cell_outputs["status"]["printed"]


def test_every_command_that_is_told_is_one_of_a_cell(
    cell_outputs,
):
    texts = {name: text for name, cell in cell_outputs.items() for text in cell.values()}
    next_steps = {name: re.findall(r"\bNext: (.*)", text) for name, text in texts.items()}
    commands = {name: steps[-1] for name, steps in next_steps.items() if steps}
    expected = ("hint", "trace", "plot", "check", "ask by its command")
    assert [name for name in expected if name not in commands] == []
    assert [c for c in commands.values() if not re.search(r"(^|then: )[%!]\w", c)] == []
    all_text = "".join(text for cell in cell_outputs.values() for text in cell.values())
    assert re.findall(r".*(?<!%)\bcourse (?:check|hint|trace|ask|status)\b.*", all_text) == []


def test_an_options_value_is_no_name_of_an_exercise(
    cell_outputs,
):
    assert "running_mean has no module to train" in cell_outputs["train"]["printed"]


def test_a_command_that_there_is_not_is_told(cell_outputs):
    assert "No such command 'hind'" in cell_outputs["wrong usage"]["printed"]


def test_an_exercise_that_there_is_not_is_one_sentence(
    cell_outputs,
):
    says = "course: there is no exercise 'median'; there are: running_mean.\nNext: %course status"
    assert cell_outputs["unknown"]["text/plain"] == says


def test_a_students_random_numbers_are_left_alone(cell_outputs):
    import torch

    generator = torch.Generator().manual_seed(1)
    assert float(cell_outputs["random"]["printed"]) == torch.rand((), generator=generator).item()


def test_what_is_right_is_told_so(cell_outputs):
    assert cell_outputs["check right"]["text/plain"].startswith("✓ 01 The running mean")


def test_questions_are_about_the_saved_notebook_and_named_by_its_cells(
    cell_outputs,
):
    unsaved = (
        "course: nothing in 01_running_mean.ipynb as it was saved can be asked about.\n"
        "Save it.\nNext: %ask"
    )
    assert cell_outputs["ask unsaved"]["text/plain"] == unsaved
    questions, answers = cell_outputs["ask"]["text/plain"], cell_outputs["answer"]["text/plain"]
    assert questions.count("Question ") == 5
    assert " of code cell 1" in questions
    assert "It is " not in questions
    assert answers.count("✓ ") + answers.count("✗ ") == 5
    assert [line for line in answers.splitlines() if line.startswith("Question ")] == [
        line for line in questions.splitlines() if line.startswith("Question ")
    ]
