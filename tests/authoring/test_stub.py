"""Making the stub of a solution, as a script and as a notebook for nbgrader."""

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import jupytext
import nbformat
import pytest

from manyheads.authoring.make_stub import STUB, strip, stub_notebook
from manyheads.checks.hidden_check import CheckOutcome, Layer
from manyheads.files import CourseFault
from manyheads.submission.read import read_notebook
from tests.make import REPOSITORY, cases

SOLUTIONS = sorted(
    [*REPOSITORY.glob("solutions/*/*.py"), *REPOSITORY.glob("tests/tiny_course/solutions/*/*.py")]
)
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


def with_markers(source: str) -> str:
    """Replace | by line breaks, and BEGIN and END by the markers of a solution."""
    text = source.replace("|", "\n")
    return re.sub(r"(?<!# )BEGIN", BEGIN, re.sub(r"(?<!# )END", END, text))


@cases(
    "source, stub",
    {
        "one part, in its indent": (
            "def f(x):|    BEGIN|    return x|    END|",
            "def f(x):|    TODO|    RAISE|",
        ),
        "a part without indent": ("BEGIN|x = 1|END|y = 2|", "TODO|RAISE|y = 2|"),
        "two parts, each in its own indent": (
            "a|  BEGIN|  b|  END|c|    BEGIN|    d|    END|",
            "a|  TODO|  RAISE|c|    TODO|    RAISE|",
        ),
        "a part with nothing in it": ("def f():|  BEGIN|  END|", "def f():|  TODO|  RAISE|"),
        "a tab as indent, and no line end at the end": (
            "def f():|\tBEGIN||\treturn 1||\tEND",
            "def f():|\tTODO|\tRAISE|",
        ),
        "blanks after the markers": (
            "x = 0   |    BEGIN   |    x|    END   |",
            "x = 0   |    TODO|    RAISE|",
        ),
    },
)
def test_each_solution_part_is_replaced_by_the_stub(source, stub):
    todo, exception = STUB
    lines = stub.replace("TODO", todo).replace("RAISE", exception).replace("|", "\n")
    assert strip(with_markers(source), "01_f.py") == lines


NOT_ALONE, NO_PART = "not alone on its line", "no solution part at all"


@cases(
    "source, line, problem",
    {
        "a part that is never closed": ("x|BEGIN|y", 2, f"{BEGIN} is never closed"),
        "a second one": ("BEGIN|END|x|BEGIN|y", 4, f"{BEGIN} is never closed"),
        "a part in a part": ("BEGIN|x|BEGIN|y|END", 3, "inside the part that began on line 1"),
        "a stray end after a good part": ("BEGIN|END|x|END", 4, f"{END} without {BEGIN}"),
        "end before begin": ("END|BEGIN", 1, f"{END} without {BEGIN}"),
        "a begin after code": ("x = 1  BEGIN|END", 1, NOT_ALONE),
        "an end after code": ("BEGIN|y = 2  END", 2, NOT_ALONE),
        "a marker of one #": ("# BEGIN SOLUTION|x|# END SOLUTION", 1, NOT_ALONE),
        "a marker of four # after a part": ("BEGIN|x|END|#### BEGIN SOLUTION", 4, NOT_ALONE),
        "an empty source": ("", 1, NO_PART),
        "lower case": ("### begin solution|x|### end solution", 1, NO_PART),
    },
)
def test_a_misplaced_marker_is_refused_with_its_line(source, line, problem):
    with pytest.raises(CourseFault) as error:
        strip(with_markers(source), "solutions/a/01_f.py")
    message = str(error.value)
    assert message.startswith(f"solutions/a/01_f.py:{line}: ")
    assert problem in message
    assert message.endswith("Next: mend it, then course release")


CHECKS = (
    CheckOutcome("values", "averages", Layer.VALUES, 1.5, ""),
    CheckOutcome("shape", "gives as many", Layer.SHAPE, 1, ""),
    CheckOutcome("gradients", "lets gradients through", Layer.VALUES, 1, ""),
)


@pytest.fixture(params=SOLUTIONS, ids=lambda path: path.stem)
def solution_text(request: pytest.FixtureRequest) -> str:
    """Return the source of each solution."""
    path: Path = request.param
    return path.read_text(encoding="utf-8")


@pytest.fixture
def stub(solution_text: str) -> str:
    """Return the stub of each solution."""
    return strip(solution_text, "01_f.py")


def valid_notebook(text: str) -> nbformat.NotebookNode:
    """Read a notebook, and check that it is valid."""
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    return notebook


def parts_of(cell: nbformat.NotebookNode) -> tuple[object, ...]:
    """Return what is compared of a cell."""
    return cell.cell_type, cell.source, cell.metadata


def test_the_stub_notebook_has_setup_stub_and_check_cells(
    stub,
):
    setup_cell, *cells = valid_notebook(stub_notebook(stub, "running_mean", CHECKS)).cells
    assert setup_cell.source.endswith('load_magics("running_mean")')
    script_cells = jupytext.reads(stub, fmt="py:percent").cells
    assert [(c.cell_type, c.source) for c in cells[: len(script_cells)]] == [
        (c.cell_type, c.source) for c in script_cells
    ]
    assert 'check_notebook("running_mean")' in cells[len(script_cells)].source
    points_text = "points. `course grade` runs these checks on this notebook's code:"
    assert [c.source.splitlines() for c in cells[len(script_cells) + 1 :]] == [
        [f"# Graded, 1 {points_text}", "#   gives as many"],
        [f"# Graded, 2.5 {points_text}", "#   averages", "#   lets gradients through"],
    ]


def test_the_stub_notebook_has_the_same_code_as_the_script(stub):
    source = read_notebook(stub_notebook(stub, "running_mean", CHECKS)).text
    assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(stub))


def test_cells_have_unique_ids_and_only_solution_cells_are_editable(stub):
    cells = valid_notebook(stub_notebook(stub, "running_mean", CHECKS)).cells
    marks = [cell.metadata.get("nbgrader", {}) for cell in cells]
    for ids in ([cell.id for cell in cells], [mark.grade_id for mark in marks if mark]):
        assert len(set(ids)) == len(ids)
    for cell, mark in zip(cells, marks, strict=True):
        assert ("# YOUR CODE HERE" in cell.source) == bool(mark.get("solution"))
        assert bool(mark.get("locked")) == (cell.metadata.get("editable") is False)
        assert not (mark.get("solution") and mark.get("locked"))


def test_the_stub_notebook_is_the_one_that_nbgrader_makes(solution_text, stub):
    preprocessors = pytest.importorskip("nbgrader.preprocessors")
    nbgraderformat = pytest.importorskip("nbgrader.nbgraderformat")
    clear = preprocessors.ClearSolutions(code_stub={"python": "\n".join(STUB)})
    nbgrader_notebook, _ = clear.preprocess(
        valid_notebook(stub_notebook(solution_text, "running_mean", CHECKS)), {}
    )
    nbgrader_notebook, _ = preprocessors.ComputeChecksums().preprocess(nbgrader_notebook, {})
    own_notebook = valid_notebook(stub_notebook(stub, "running_mean", CHECKS))
    assert [parts_of(cell) for cell in own_notebook.cells] == [
        parts_of(cell) for cell in nbgrader_notebook.cells
    ]
    nbgraderformat.MetadataValidator().validate_nb(own_notebook)
    marks = [cell.metadata.get("nbgrader", {}) for cell in own_notebook.cells]
    assert [mark.points for mark in marks if mark.get("grade")] == [0, 1, 2.5]


@pytest.mark.skipif(find_spec("rfc3987_syntax") is None, reason="Jupyter has not installed it")
def test_importing_make_stub_does_not_import_a_slow_grammar():
    expression = "[name for name in sys.modules if name.startswith('rfc3987')]"
    code = f"import sys, manyheads.authoring.make_stub; assert not {expression}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)
