"""From a solution's source to the stub, as a script and as a notebook that nbgrader understands."""

import ast
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
from tests.make import REPOSITORY

SOLUTIONS = sorted(
    [*REPOSITORY.glob("solutions/*/*.py"), *REPOSITORY.glob("tests/tiny_course/solutions/*/*.py")]
)
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


@pytest.mark.parametrize(
    ("source", "stub"),
    [
        pytest.param(
            "def f(x):\n    BEGIN\n    return x\n    END\n",
            "def f(x):\n    TODO\n    RAISE\n",
            id="one part, in its indent",
        ),
        pytest.param(
            "BEGIN\nx = 1\nEND\ny = 2\n", "TODO\nRAISE\ny = 2\n", id="a part without indent"
        ),
        pytest.param(
            "a\n  BEGIN\n  b\n  END\nc\n    BEGIN\n    d\n    END\n",
            "a\n  TODO\n  RAISE\nc\n    TODO\n    RAISE\n",
            id="two parts, each in its own indent",
        ),
        pytest.param(
            "def f():\n    BEGIN\n    END\n",
            "def f():\n    TODO\n    RAISE\n",
            id="a part with nothing in it",
        ),
        pytest.param(
            "def f():\n\tBEGIN\n\n\treturn 1\n\n\tEND",
            "def f():\n\tTODO\n\tRAISE\n",
            id="a tab as indent, and no line end at the end",
        ),
        pytest.param(
            "x = 0   \n    BEGIN   \n    x\n    END   \n",
            "x = 0   \n    TODO\n    RAISE\n",
            id="blanks after the markers",
        ),
    ],
)
def test_each_part_gives_way_to_the_stub(source: str, stub: str) -> None:
    stub = stub.replace("TODO", "# YOUR CODE HERE").replace(
        "RAISE", 'raise NotImplementedError("write this part")'
    )
    assert strip(source.replace("BEGIN", BEGIN).replace("END", END), "01_f.py") == stub


@pytest.mark.parametrize(
    ("lines", "line", "problem"),
    [
        pytest.param(
            ["x", BEGIN, "y"], 2, f"{BEGIN} is never closed", id="a part that is never closed"
        ),
        pytest.param(
            [BEGIN, END, "x", BEGIN, "y"],
            4,
            f"{BEGIN} is never closed",
            id="a second part that is never closed",
        ),
        pytest.param(
            [BEGIN, "x", BEGIN, "y", END],
            3,
            f"{BEGIN} inside the part that began on line 1",
            id="a part in a part",
        ),
        pytest.param(
            [BEGIN, END, "x", END], 4, f"{END} without {BEGIN}", id="a stray end after a good part"
        ),
        pytest.param([END, BEGIN], 1, f"{END} without {BEGIN}", id="end before begin"),
        pytest.param(
            ["x = 1  ### BEGIN SOLUTION", END], 1, "not alone on its line", id="a begin after code"
        ),
        pytest.param(
            [BEGIN, "y = 2  ### END SOLUTION"], 2, "not alone on its line", id="an end after code"
        ),
        pytest.param(
            ["# BEGIN SOLUTION", "x", "# END SOLUTION"],
            1,
            "not alone on its line",
            id="a marker of one #",
        ),
        pytest.param(
            [BEGIN, "x", END, "#### BEGIN SOLUTION"],
            4,
            "not alone on its line",
            id="a marker of four # after a part",
        ),
        pytest.param([], 1, "no solution part at all", id="an empty source"),
        pytest.param(
            ["### begin solution", "x", "### end solution"],
            1,
            "no solution part at all",
            id="lower case",
        ),
    ],
)
def test_a_marker_out_of_place_is_refused_with_its_line(
    lines: list[str], line: int, problem: str
) -> None:
    with pytest.raises(CourseFault) as error:
        strip("\n".join(lines) + "\n", "solutions/a/01_f.py")
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
def solution(request: pytest.FixtureRequest) -> str:
    path: Path = request.param
    return path.read_text(encoding="utf-8")


@pytest.fixture
def stub(solution: str) -> str:
    return strip(solution, "01_f.py")


def read(text: str) -> nbformat.NotebookNode:
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    return notebook


def test_the_notebook_has_magics_stub_cells_visible_checks_and_a_cell_per_group_of_hidden_ones(
    stub,
):
    setup_cell, *cells = read(stub_notebook(stub, "running_mean", CHECKS)).cells
    assert setup_cell.source.endswith('load_magics("running_mean")')
    paired = jupytext.reads(stub, fmt="py:percent").cells
    assert [(c.cell_type, c.source) for c in cells[: len(paired)]] == [
        (c.cell_type, c.source) for c in paired
    ]
    assert 'check_notebook("running_mean")' in cells[len(paired)].source
    remark = "points. `course grade` runs these checks on this notebook's code:"
    assert [c.source.splitlines() for c in cells[len(paired) + 1 :]] == [
        [f"# Graded, 1 {remark}", "#   gives as many"],
        [f"# Graded, 2.5 {remark}", "#   averages", "#   lets gradients through"],
    ]


def test_a_grader_reads_the_same_code_from_it_as_from_the_script(stub: str) -> None:
    source = read_notebook(stub_notebook(stub, "running_mean", CHECKS)).text
    assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(stub))


def test_cells_have_ids_that_differ_and_students_may_write_in_the_solution_cells_alone(
    stub: str,
) -> None:
    cells = read(stub_notebook(stub, "running_mean", CHECKS)).cells
    for ids in (
        [c.id for c in cells],
        [c.metadata.nbgrader.grade_id for c in cells if "nbgrader" in c.metadata],
    ):
        assert len(set(ids)) == len(ids)
    for cell in cells:
        marks = cell.metadata.get("nbgrader", {})
        assert ("# YOUR CODE HERE" in cell.source) == bool(marks.get("solution"))
        assert bool(marks.get("locked")) == (cell.metadata.get("editable") is False)
        assert not (marks.get("solution") and marks.get("locked"))


def test_nbgrader_strips_a_real_solution_to_the_same_cells_and_accepts_what_ours_say(
    solution: str, stub: str
) -> None:
    preprocessors = pytest.importorskip("nbgrader.preprocessors")
    nbgraderformat = pytest.importorskip("nbgrader.nbgraderformat")
    clear = preprocessors.ClearSolutions(code_stub={"python": "\n".join(STUB)})
    stripped, _ = clear.preprocess(read(stub_notebook(solution, "running_mean", CHECKS)), {})
    stripped, _ = preprocessors.ComputeChecksums().preprocess(stripped, {})
    ours = read(stub_notebook(stub, "running_mean", CHECKS))
    assert [(c.cell_type, c.source) for c in ours.cells] == [
        (c.cell_type, c.source) for c in stripped.cells
    ]
    assert [c.metadata for c in ours.cells] == [c.metadata for c in stripped.cells], (
        "with its own checksums"
    )
    nbgraderformat.MetadataValidator().validate_nb(ours)
    graded = [
        c.metadata.nbgrader.points
        for c in ours.cells
        if c.metadata.get("nbgrader", {}).get("grade")
    ]
    assert graded == [0, 1, 2.5]


@pytest.mark.skipif(find_spec("rfc3987_syntax") is None, reason="Jupyter has not installed it")
def test_no_process_builds_a_grammar_that_no_notebook_needs() -> None:
    expression = "[name for name in sys.modules if name.startswith('rfc3987')]"
    code = f"import sys, manyheads.authoring.make_stub; assert not {expression}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)
