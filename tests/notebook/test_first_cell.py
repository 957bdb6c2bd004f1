"""The first cell of a released notebook loads %check, which checks the cells that have run."""

import shutil

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

from manyheads.course import load_course
from tests.make import REPOSITORY

pytestmark = pytest.mark.journey

IMPORT_ENGINE = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})"


def code_of(notebook):
    """Return the sources of the code cells."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def first_exercise():
    """Return the first exercise of the real course."""
    return load_course(REPOSITORY).exercises[0]


@pytest.fixture(scope="module")
def check_outputs(first_exercise, tmp_path_factory):
    """Return the text of each %check, in a notebook whose cells run out of order.

    The first %check follows a wrong attention_scores, the second a right one; before the third,
    attention_weights has run as well.
    """
    root = tmp_path_factory.mktemp("class")
    assignment = first_exercise.assignment
    folder = root / "exercises" / assignment.id
    shutil.copytree(assignment.exercises_folder, folder)
    shutil.copy(REPOSITORY / "course.yaml", root)
    first_cell, setup = code_of(nbformat.read(first_exercise.notebook, as_version=4))[:2]
    simplified, scores, weights, attend = (
        source
        for source in code_of(jupytext.read(first_exercise.solution))
        if "### BEGIN SOL" in source
    )
    wrong_scores = scores.replace("/ math.sqrt(", "/ (")
    first_cells = [IMPORT_ENGINE, first_cell, setup, simplified, attend]
    sources = [*first_cells, wrong_scores, "%check", scores, "%check", weights, "%check"]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    NotebookClient(
        nbformat.v4.new_notebook(cells=cells),
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    outputs = [(cell.source, output) for cell in cells for output in cell.outputs]
    assert [source for source, _ in outputs] == ["%check"] * 3
    return [" ".join(output.data["text/plain"].split()) for _, output in outputs]


def test_check_magic_judges_only_the_cells_that_have_run(
    check_outputs,
):
    text = check_outputs[0]
    assert "✓ simplified_attention ✗ attention_scores: You divided by head_dim itself" in text
    assert (
        "· attention_weights: its cell has not run yet · attend: waits for attention_scores, "
        "which it uses"
    ) in text
    text_after_correction = check_outputs[1]
    assert text_after_correction.startswith("… 01 Attention scores 1.5 / 5")
    assert "attend: waits for attention_weights, whose cell has not run" in text_after_correction


def test_check_magic_explains_a_passed_exercise_and_names_the_next_notebook(
    check_outputs, first_exercise
):
    text = check_outputs[2]
    assert text.startswith(f"✓ {first_exercise.stem[:2]} {first_exercise.row.title} ")
    assert first_exercise.why in text
    assert text.endswith("Go on with The causal mask, in 02_causal_mask.ipynb.")
