"""The stub as a notebook: the same text every time, and nbgrader understands it."""

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import jupytext
import nbformat
import pytest

from manyheads.authoring.stub import strip
from manyheads.authoring.stub_notebook import Group, stub_notebook
from manyheads.submission.read import read_notebook
from tests.make import REPOSITORY

SOLUTIONS = sorted([*REPOSITORY.glob("solutions/*/*.py"), *REPOSITORY.glob("tests/tiny_course/solutions/*/*.py")])
OF_VALUES = Group("values", 2.5, ("averages", "lets gradients through"), ("values", "gradients"))
GROUPS = (Group("shape", 1, ("gives as many",), ("shape",)), OF_VALUES)


@pytest.fixture(params=SOLUTIONS, ids=lambda path: path.stem)
def stub(request: pytest.FixtureRequest) -> str:
    path: Path = request.param
    return strip(path.read_text(encoding="utf-8"), path.name)


def read(text: str) -> nbformat.NotebookNode:
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    return notebook


def test_it_has_the_magics_the_stubs_cells_the_visible_checks_and_one_cell_a_group_of_hidden_ones(stub):
    first, *cells = read(stub_notebook(stub, "running_mean", GROUPS)).cells
    assert first.source.endswith('load_magics("running_mean")')
    paired = jupytext.reads(stub, fmt="py:percent").cells
    assert [(c.cell_type, c.source) for c in cells[: len(paired)]] == [(c.cell_type, c.source) for c in paired]
    assert 'check_notebook("running_mean")' in cells[len(paired)].source
    assert [c.source.splitlines() for c in cells[len(paired) + 1 :]] == [
        ["# Graded, 1 points. `course grade` runs these checks on this notebook's code:", "#   gives as many"],
        ["# Graded, 2.5 points. `course grade` runs these checks on this notebook's code:", "#   averages",
            "#   lets gradients through"],
    ]  # fmt: skip


def test_a_grader_reads_the_same_code_from_it_as_from_the_script(stub: str) -> None:
    source = read_notebook(stub_notebook(stub, "running_mean", GROUPS)).source
    assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(stub))


def test_cells_have_ids_that_differ(stub: str) -> None:
    cells = read(stub_notebook(stub, "running_mean", GROUPS)).cells
    for ids in ([c.id for c in cells], [c.metadata.nbgrader.grade_id for c in cells if "nbgrader" in c.metadata]):
        assert len(set(ids)) == len(ids)


def test_students_may_write_in_the_solution_cells_and_nowhere_else(stub: str) -> None:
    for cell in read(stub_notebook(stub, "running_mean", GROUPS)).cells:
        marks = cell.metadata.get("nbgrader", {})
        assert ("# YOUR CODE HERE" in cell.source) == bool(marks.get("solution"))
        assert bool(marks.get("locked")) == (cell.metadata.get("editable") is False)
        assert not (marks.get("solution") and marks.get("locked"))


def test_its_checksums_are_those_that_nbgrader_works_out(stub: str) -> None:
    utils = pytest.importorskip("nbgrader.utils")
    marked = [c for c in read(stub_notebook(stub, "running_mean", GROUPS)).cells if "nbgrader" in c.metadata]
    assert [c.metadata.nbgrader.checksum for c in marked] == [utils.compute_checksum(c) for c in marked]


def test_nbgrader_accepts_its_metadata(stub: str) -> None:
    nbgraderformat = pytest.importorskip("nbgrader.nbgraderformat")
    notebook = read(stub_notebook(stub, "running_mean", GROUPS))
    nbgraderformat.MetadataValidator().validate_nb(notebook)
    graded = [c.metadata.nbgrader.points for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade")]
    assert graded == [0, 1, 2.5]


@pytest.mark.skipif(find_spec("rfc3987_syntax") is None, reason="Jupyter has not installed it")
def test_no_process_builds_a_grammar_that_no_notebook_needs() -> None:
    known = "[name for name in sys.modules if name.startswith('rfc3987')]"
    code = f"import sys, manyheads.authoring.stub_notebook; assert not {known}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)
