"""A released notebook in a real JupyterLab, beside the open file browser: run all, then the kernel is restarted."""

import shutil
from collections.abc import Iterator

import jupytext
import nbformat
import pytest

from manyheads.course import load_course
from tests.browser import Browser
from tests.jupyter import TOKEN, jupyter
from tests.make import REPOSITORY

pytestmark = pytest.mark.soak

WIDTH = 960  # of the window: about 600 are left for the notebook
MAGICS = ("%check", "%course hint", "%course trace", "%course plot")
NOTEBOOK = "jupyterapp.shell.currentWidget"
OUTPUTS = "[...document.querySelectorAll('.jp-OutputArea-output')]"
TOO_WIDE = f"{OUTPUTS}.flatMap(e => [e, ...e.querySelectorAll('pre, div')]).filter(e => e.scrollWidth > e.clientWidth + 1).length"


@pytest.fixture(scope="module")
def lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The first notebook with a mistake in one function and another one unwritten, open, and the magics at its end."""
    exercise = load_course(REPOSITORY).exercises[0]
    folder = tmp_path_factory.mktemp("class")
    notebook = nbformat.read(exercise.notebook, as_version=4)
    solutions = [c.source for c in jupytext.read(exercise.solution).cells if "### BEGIN SOLUTION" in c.source]
    stubs = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("solution")]
    for cell, source in zip(stubs[:-1], solutions, strict=False):
        cell.source = source.replace("/ math.sqrt(", "/ (")
    kept = [notebook.cells[0], next(c for c in notebook.cells if c.source.startswith("import math")), *stubs]
    notebook.cells = [*kept, *map(nbformat.v4.new_code_cell, MAGICS)]
    shutil.copytree(exercise.assignment.exercises_folder, folder / "exercises" / exercise.assignment.id)
    shutil.copy(REPOSITORY / "course.yaml", folder)
    nbformat.write(notebook, folder / exercise.notebook.relative_to(REPOSITORY))
    with jupyter(folder, tmp_path_factory.mktemp("home")) as address:
        browser.open(f"{address}/api/status?token={TOKEN}")
        browser.open(f"{address}/lab/tree/{exercise.notebook.relative_to(REPOSITORY)}?reset", WIDTH, 3000)
        browser.until("!!window.jupyterapp")
        browser.until("document.querySelector('.jp-Notebook-ExecutionIndicator[data-status=\"idle\"]')")
        browser.js(f"{NOTEBOOK}.sessionContext.ready.then(() => 1)")
        yield browser


def run(lab: Browser, command: str) -> list[str]:
    """Run cells; what each output then shows."""
    lab.js(f"jupyterapp.commands.execute('notebook:{command}').then(() => 1)")
    shown = lab.js(f"{OUTPUTS}.map(e => e.innerText)")
    assert isinstance(shown, list)
    return shown


def test_all_output_fits_beside_the_file_browser(lab: Browser) -> None:
    check, hint, trace, plot = run(lab, "run-all-cells")
    assert "attention_scores: You divided by head_dim itself" in " ".join(check.split())
    assert check.index("You divided") < check.index("hint for attention_scores") < check.index("attention_weights")
    assert "· attend: not written yet" in check
    assert "Hint 1 of 3" in hint
    assert "attention_scores(q, k)" in trace
    assert "the largest difference is" in plot
    assert 500 < float(str(lab.js("document.querySelector('.jp-NotebookPanel').clientWidth"))) < 650
    assert lab.js(TOO_WIDE) == 0


def test_after_a_restart_the_first_cell_is_enough_to_be_told_what_has_not_run(lab: Browser) -> None:
    lab.js(f"{NOTEBOOK}.sessionContext.restartKernel().then(() => 1)")
    lab.js("jupyterapp.commands.execute('notebook:clear-all-cell-outputs').then(() => 1)")
    for cell in (0, len(MAGICS) + 2):  # the first, and %check
        lab.js(f"{NOTEBOOK}.content.activeCellIndex = {cell}")
        shown = run(lab, "run-cell")
    said = " ".join(shown[0].split())
    assert said.startswith("… 01 Attention scores 0 / 5")
    assert said.count("its cell has not run yet") == 4
