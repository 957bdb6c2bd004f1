"""From a solution's source to the stub: every marker must stand where it can be understood."""

from pathlib import Path

import pytest

from manyheads.authoring.stub import STUB, solution_parts, strip
from manyheads.errors import CourseFault
from tests.make import REPOSITORY

SOLUTIONS = sorted([*REPOSITORY.glob("solutions/*/*.py"), *REPOSITORY.glob("tests/tiny_course/solutions/*/*.py")])


@pytest.mark.parametrize(("source", "stub"), [
    pytest.param("def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION\n",
        "def f(x):\n    # YOUR CODE HERE\n    raise NotImplementedError(\"write this part\")\n", id="one part, in its indent"),
    pytest.param("### BEGIN SOLUTION\nx = 1\n### END SOLUTION\ny = 2\n",
        "# YOUR CODE HERE\nraise NotImplementedError(\"write this part\")\ny = 2\n", id="a part without indent"),
    pytest.param("a\n  ### BEGIN SOLUTION\n  b\n  ### END SOLUTION\n"
        "c\n    ### BEGIN SOLUTION\n    d\n    ### END SOLUTION\n",
        "a\n  # YOUR CODE HERE\n  raise NotImplementedError(\"write this part\")\n"
        "c\n    # YOUR CODE HERE\n    raise NotImplementedError(\"write this part\")\n", id="two parts, each in its own indent"),
    pytest.param("def f():\n    ### BEGIN SOLUTION\n    ### END SOLUTION\n",
        "def f():\n    # YOUR CODE HERE\n    raise NotImplementedError(\"write this part\")\n", id="a part with nothing in it"),
    pytest.param("def f():\n\t### BEGIN SOLUTION\n\n\treturn 1\n\n\t### END SOLUTION",
        "def f():\n\t# YOUR CODE HERE\n\traise NotImplementedError(\"write this part\")\n",
        id="a tab as indent, and no line end at the end"),
    pytest.param("x = 0   \n    ### BEGIN SOLUTION   \n    x\n    ### END SOLUTION   \n",
        "x = 0   \n    # YOUR CODE HERE\n    raise NotImplementedError(\"write this part\")\n", id="blanks after the markers"),
])  # fmt: skip
def test_each_part_gives_way_to_the_stub(source: str, stub: str) -> None:
    assert strip(source, "01_f.py") == stub


BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


@pytest.mark.parametrize(("lines", "line", "problem"), [
    pytest.param(["x", BEGIN, "y"], 2, f"{BEGIN} is never closed", id="a part that is never closed"),
    pytest.param([BEGIN, END, "x", BEGIN, "y"], 4, f"{BEGIN} is never closed", id="a second part that is never closed"),
    pytest.param([BEGIN, "x", BEGIN, "y", END], 3, f"{BEGIN} inside the part that began on line 1",
        id="a part in a part"),
    pytest.param(["x", END], 2, f"{END} without {BEGIN}", id="a stray end"),
    pytest.param([BEGIN, END, "x", END], 4, f"{END} without {BEGIN}", id="a stray end after a good part"),
    pytest.param([END, BEGIN], 1, f"{END} without {BEGIN}", id="end before begin"),
    pytest.param(["x = 1  ### BEGIN SOLUTION", END], 1, "not alone on its line", id="a begin after code"),
    pytest.param([BEGIN, "y = 2  ### END SOLUTION"], 2, "not alone on its line", id="an end after code"),
    pytest.param(["# BEGIN SOLUTION", "x", "# END SOLUTION"], 1, "not alone on its line", id="a marker of one #"),
    pytest.param([BEGIN, "x", END, "#### BEGIN SOLUTION"], 4, "not alone on its line",
        id="a marker of four # after a part"),
    pytest.param(["x = 1"], 1, "no solution part at all", id="no part at all"),
    pytest.param([], 1, "no solution part at all", id="an empty source"),
    pytest.param(["### begin solution", "x", "### end solution"], 1, "no solution part at all", id="lower case"),
])  # fmt: skip
def test_a_marker_out_of_place_is_refused_with_its_line(lines: list[str], line: int, problem: str) -> None:
    with pytest.raises(CourseFault) as error:
        strip("\n".join(lines) + "\n", "solutions/a/01_f.py")
    message = str(error.value)
    assert message.startswith(f"solutions/a/01_f.py:{line}: ")
    assert problem in message
    assert message.endswith("Next: mend it, then course release")


def test_what_is_taken_out_is_what_solution_parts_gives() -> None:
    source = f"a\n  {BEGIN}\n  b\n\n    c\n  {END}\nd\n{BEGIN}\ne\n{END}\n"
    assert solution_parts(source) == ["b", "c", "e"]
    assert not set(solution_parts(source)) & set(strip(source, "f").splitlines())


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_no_line_of_a_real_solution_stands_in_its_stub(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    stub = strip(source, path.name)
    kept = [line.strip() for line in stub.splitlines()]
    told = [line for line in solution_parts(source) if len(line) > 12 and kept.count(line)]
    assert told == []
    assert stub.count(STUB[1]) == source.count(BEGIN)
    compile(stub, path.name, "exec")


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_nbgrader_strips_a_real_solution_to_the_same_cells(path: Path) -> None:
    preprocessors = pytest.importorskip("nbgrader.preprocessors")
    import nbformat

    from manyheads.authoring.stub_notebook import stub_notebook

    source = path.read_text(encoding="utf-8")
    solution = nbformat.reads(stub_notebook(source, "exercise", []), as_version=4)
    stripped, _ = preprocessors.ClearSolutions(code_stub={"python": "\n".join(STUB)}).preprocess(solution, {})
    stripped, _ = preprocessors.ComputeChecksums().preprocess(stripped, {})
    ours = nbformat.reads(stub_notebook(strip(source, path.name), "exercise", []), as_version=4)
    assert [(c.cell_type, c.source) for c in ours.cells] == [(c.cell_type, c.source) for c in stripped.cells]
    assert [c.metadata for c in ours.cells] == [c.metadata for c in stripped.cells]
