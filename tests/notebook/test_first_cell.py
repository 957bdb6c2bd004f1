"""A released notebook as a student runs it: its first cell knows its exercise, and %check judges
what has run so far.
"""

import shutil
from typing import Any

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

from manyheads.course import Exercise, load_course
from tests.make import REPOSITORY

pytestmark = pytest.mark.journey

ENGINE = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})"


@pytest.fixture(scope="module")
def exercise() -> Exercise:
    return load_course(REPOSITORY).exercises[0]


@pytest.fixture(scope="module")
def check_outputs(exercise: Exercise, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each %check shows, in a notebook whose cells run out of order."""
    folder = tmp_path_factory.mktemp("class")
    shutil.copytree(
        exercise.assignment.exercises_folder, folder / "exercises" / exercise.assignment.id
    )
    shutil.copy(REPOSITORY / "course.yaml", folder)
    first_cell, setup = code_of(nbformat.read(exercise.notebook, as_version=4))[:2]
    simplified, scores, weights, attend = solutions_of(exercise)
    wrong_scores = scores.replace("/ math.sqrt(", "/ (")
    cells = [
        first_cell,
        setup,
        simplified,
        attend,
        wrong_scores,
        "%check",
        scores,
        "%check",
        weights,
        "%check",
    ]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in (ENGINE, *cells)]
    )
    where = {"metadata": {"path": str(folder / "exercises" / exercise.assignment.id)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()
    assert [
        cell.source for cell in notebook.cells if cell.outputs and not cell.source.startswith("%")
    ] == []
    return [text_of(cell) for cell in notebook.cells if cell.source.startswith("%")]


def code_of(notebook: Any) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def solutions_of(exercise: Exercise) -> list[str]:
    return [
        source
        for source in code_of(jupytext.read(exercise.solution))
        if "### BEGIN SOLUTION" in source
    ]


def text_of(cell: Any) -> str:
    (output,) = cell.outputs
    return str(output.data["text/plain"])


def test_a_check_in_the_middle_judges_what_has_run_and_says_what_has_not(
    check_outputs,
):
    text = " ".join(check_outputs[0].split())
    assert "✓ simplified_attention ✗ attention_scores: You divided by head_dim itself" in text
    assert (
        "· attention_weights: its cell has not run yet · attend: waits for attention_scores, "
        "which it uses"
    ) in text
    mended = " ".join(check_outputs[1].split())
    assert mended.startswith("… 01 Attention scores 1.5 / 5")
    assert "attend: waits for attention_weights, whose cell has not run" in mended


def test_when_all_has_run_it_says_why_it_works_and_which_notebook_is_next(check_outputs, exercise):
    text = " ".join(check_outputs[2].split())
    assert text.startswith(f"✓ {exercise.stem[:2]} {exercise.row.title} ")
    assert exercise.why in text
    assert text.endswith("Go on with The causal mask, in 02_causal_mask.ipynb.")
