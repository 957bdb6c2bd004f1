"""From a solution's source to the stub, as a script and as a notebook that nbgrader understands."""

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
    """The source with lines for |, and with the markers of a solution for BEGIN and END alone."""
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
def test_each_part_gives_way_to_the_stub(source, stub):
    todo, exception = STUB
    lines = stub.replace("TODO", todo).replace("RAISE", exception).replace("|", "\n")
    assert strip(with_markers(source), "01_f.py") == lines


NOT_ALONE, NONE = "not alone on its line", "no solution part at all"


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
        "an empty source": ("", 1, NONE),
        "lower case": ("### begin solution|x|### end solution", 1, NONE),
    },
)
def test_a_marker_out_of_place_is_refused_with_its_line(source, line, problem):
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
    path: Path = request.param
    return path.read_text(encoding="utf-8")


@pytest.fixture
def stub(solution_text: str) -> str:
    return strip(solution_text, "01_f.py")


def valid_notebook(text: str) -> nbformat.NotebookNode:
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    return notebook


def parts_of(cell: nbformat.NotebookNode) -> tuple[object, ...]:
    return cell.cell_type, cell.source, cell.metadata


def test_the_notebook_has_magics_stub_cells_visible_checks_and_a_cell_per_group_of_hidden_ones(
    stub,
):
    setup_cell, *cells = valid_notebook(stub_notebook(stub, "running_mean", CHECKS)).cells
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


def test_a_grader_reads_the_same_code_from_it_as_from_the_script(stub):
    source = read_notebook(stub_notebook(stub, "running_mean", CHECKS)).text
    assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(stub))


def test_cells_have_ids_that_differ_and_students_may_write_in_the_solution_cells_alone(stub):
    cells = valid_notebook(stub_notebook(stub, "running_mean", CHECKS)).cells
    marks = [cell.metadata.get("nbgrader", {}) for cell in cells]
    for ids in ([cell.id for cell in cells], [mark.grade_id for mark in marks if mark]):
        assert len(set(ids)) == len(ids)
    for cell, mark in zip(cells, marks, strict=True):
        assert ("# YOUR CODE HERE" in cell.source) == bool(mark.get("solution"))
        assert bool(mark.get("locked")) == (cell.metadata.get("editable") is False)
        assert not (mark.get("solution") and mark.get("locked"))


def test_nbgrader_strips_a_real_solution_to_the_same_cells_and_accepts_what_ours_say(
    solution_text, stub
):
    preprocessors = pytest.importorskip("nbgrader.preprocessors")
    nbgraderformat = pytest.importorskip("nbgrader.nbgraderformat")
    clear = preprocessors.ClearSolutions(code_stub={"python": "\n".join(STUB)})
    stripped, _ = clear.preprocess(
        valid_notebook(stub_notebook(solution_text, "running_mean", CHECKS)), {}
    )
    stripped, _ = preprocessors.ComputeChecksums().preprocess(stripped, {})
    ours = valid_notebook(stub_notebook(stub, "running_mean", CHECKS))
    assert [parts_of(cell) for cell in ours.cells] == [parts_of(cell) for cell in stripped.cells]
    nbgraderformat.MetadataValidator().validate_nb(ours)
    marks = [cell.metadata.get("nbgrader", {}) for cell in ours.cells]
    assert [mark.points for mark in marks if mark.get("grade")] == [0, 1, 2.5]


@pytest.mark.skipif(find_spec("rfc3987_syntax") is None, reason="Jupyter has not installed it")
def test_no_process_builds_a_grammar_that_no_notebook_needs():
    expression = "[name for name in sys.modules if name.startswith('rfc3987')]"
    code = f"import sys, manyheads.authoring.make_stub; assert not {expression}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)
