"""The magics %check, %course and %ask in a real kernel, which runs all cells of one notebook."""

import os
import re
import shutil

import nbformat
import pytest
import torch
from nbclient import NotebookClient

from tests import make
from tests.make import REPOSITORY, TINY

# the cells in the order in which they run, by names for these tests
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
    "train": "%course train --steps 5",
    "gpt2": '%course gpt2 "two words"',
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
    "ended": "import shutil; shutil.rmtree('fingerprints')\n%check",
}


@pytest.fixture(scope="module")
def cell_outputs(tmp_path_factory):
    """Run the cells, and return the outputs of each by MIME type; printed text is text/plain."""
    folder = tmp_path_factory.mktemp("class") / "mine"
    shutil.copytree(TINY / "exercises", folder / "exercises")
    shutil.copy(TINY / "course.yaml", folder)
    averages = folder / "exercises" / "averages"
    for name in ("wrong", "right"):
        (averages / f"{name}.ipynb").write_text(make.notebook(f"import torch\n\n{CELLS[name]}"))
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    client = NotebookClient(
        nbformat.v4.new_notebook(cells=cells),
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(averages)}},
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    assert (folder / ".course" / "hints.json").exists()
    outputs = {}
    for name, cell in zip(CELLS, cells, strict=True):
        outputs[name] = {}
        for output in cell.outputs:
            assert output.output_type in ("display_data", "stream"), output
            is_printed = output.output_type == "stream"
            outputs[name] |= {"text/plain": output.text} if is_printed else output.data
    return outputs


@pytest.fixture(scope="module")
def cell_texts(cell_outputs):
    """Return the plain text that each cell shows, "" if it shows none."""
    return {name: output.get("text/plain", "") for name, output in cell_outputs.items()}


def test_check_magic_shows_the_report_with_a_folded_hint(cell_outputs):
    text, html = cell_outputs["check"]["text/plain"], cell_outputs["check"]["text/html"]
    assert text.startswith("✗ 01 The running mean")
    assert "  ✗ running_mean: You divided by the length of x everywhere." in text.splitlines()
    assert "<details" in html
    assert html.index("<summary") < html.index("How many numbers are in the mean at position 0?")


@pytest.mark.parametrize(
    ("cell_name", "text"),
    [
        ("unsaved", "Nothing is written here yet."),
        ("hint", "\nHint 2 of 3: "),  # %check has shown the first one
        ("hint again", "\nHint 3 of 3: "),
        ("trace", "✗ returns (T): the right shape, other numbers"),
        ("train", "running_mean has no module to train"),
        ("gpt2", "course: no exercise here has a module that fits GPT-2. Next: %course status"),
        ("wrong usage", "No such command 'hind'"),
        (
            "unknown",
            "course: there is no exercise 'median'; there are: running_mean.\nNext: %course status",
        ),
        ("check right", "✓ 01 The running mean"),
        (
            "ask unsaved",
            "course: nothing in 01_running_mean.ipynb as it was saved can be asked about.\n"
            "Save it.\nNext: %ask",
        ),
    ],
)
def test_magics_use_the_saved_notebook_of_the_loaded_exercise(cell_texts, cell_name, text):
    assert text in cell_texts[cell_name]


def test_trace_magic_names_lines_by_cell(cell_texts):
    line = "cell 1, 6 return x.cumsum(0) / len(x) # <script>alert(1)</script>"
    assert line in " ".join(cell_texts["trace"].split())


def test_magics_suggest_only_commands_that_run_in_a_cell(cell_outputs, cell_texts):
    next_steps = {name: re.findall(r"\bNext: (.*)", text) for name, text in cell_texts.items()}
    for name in ("hint", "trace", "plot", "gpt2", "check", "ask unsaved"):
        assert next_steps[name]
    for name, steps in next_steps.items():
        if steps:
            assert re.search(r"(^|then: )[%!]\w", steps[-1]), name
    for output in cell_outputs.values():
        for text in output.values():
            assert not re.search(r"(?<!%)\bcourse (?:check|hint|trace|ask|status)\b", text)


def test_magics_do_not_change_the_random_state_of_the_kernel(cell_texts):
    generator = torch.Generator().manual_seed(1)
    assert float(cell_texts["random"]) == torch.rand((), generator=generator).item()


def test_ask_magic_asks_five_questions_that_name_cells_and_marks_the_answers(cell_texts):
    """One cell runs `%ask`, and the next one `%ask AAAAA`: the answer A to each question."""
    questions = cell_texts["ask"]
    answers = cell_texts["answer"]
    assert questions.count("Question ") == 5
    assert " of code cell 1" in questions
    assert "It is " not in questions  # so begins the right answer, shown only after an answer
    assert answers.count("✓ ") + answers.count("✗ ") == 5
    headings = [re.findall(r"(?m)^Question .*", text) for text in (questions, answers)]
    assert headings[0] == headings[1]
