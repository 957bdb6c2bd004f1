"""A notebook is run cell by cell, as Jupyter runs it, and forms in which a notebook is handed in cost nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jupytext
import pytest

from manyheads.box.level import Box
from manyheads.course import Course, Exercise
from manyheads.judge.grade import Judge, Settings
from manyheads.public.attempt import check_source
from manyheads.public.file import read
from manyheads.result import ExerciseResult
from manyheads.submission.read import read_file

STEM = "01_running_mean"
RIGHT = "def running_mean(x):\n    assert len(x)\n    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n"


@pytest.fixture(scope="module")
def judge(tiny: Course, box: Box) -> Judge:
    return Judge(tiny, box, Settings(b"cells"))


@pytest.fixture
def released(running_mean: Exercise) -> dict:
    """The released notebook with a right answer in it."""
    notebook = json.loads(running_mean.notebook.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = RIGHT
    return notebook


@pytest.fixture
def grade(judge: Judge, running_mean: Exercise, tmp_path: Path) -> Callable[[Path], ExerciseResult]:
    return lambda path: judge.grade_attempt("ada", running_mean, read_file(path, 256))


def written(folder: Path, notebook: dict) -> Path:
    path = folder / f"{STEM}.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def code(source: str) -> dict:
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}


SCRATCH = {
    "a plot": "import matplotlib.pyplot as plt\nplt.plot([1, 2])",
    "Colab's mount": "from google.colab import drive\ndrive.mount('/content/drive')",
    "a top-level await": "import asyncio\nawait asyncio.sleep(0)",
    "a name that is not there": "print(undefined)",
}


@pytest.mark.parametrize("scratch", SCRATCH.values(), ids=SCRATCH)
@pytest.mark.parametrize("at", [0, 99], ids=["above the answers", "below them"])
def test_a_scratch_cell_that_fails_costs_nothing_and_is_told_with_its_number(
    grade: Callable[[Path], ExerciseResult], released: dict, tmp_path: Path, scratch: str, at: int
) -> None:
    released["cells"].insert(at, code(scratch))
    path = written(tmp_path, released)
    result = grade(path)
    assert result.score == result.max_score
    number = 1 if at == 0 else len(read_file(path, 256).cells)
    assert result.note.startswith(f"Code cell {number} did not run to its end: it raised ")


def test_a_notebook_of_which_no_answer_is_left_says_which_cell_stopped(
    grade: Callable[[Path], ExerciseResult], tmp_path: Path
) -> None:
    cells = [code("import torch"), code("oops\n" + RIGHT)]
    result = grade(written(tmp_path, {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert result.score == 0
    assert {c.evidence for c in result.checks} == {
        "Code cell 2 did not run to its end: it raised NameError on line 1 of code cell 2: a name is used that is defined nowhere."
    }
    assert [d.id for d in result.diagnosis] == ["load_error"]


NESTED = {
    "a sum of 60,000 terms": "total = " + "1+" * 60_000 + "1\n",
    "60,000 signs": "total = " + "-" * 60_000 + "1\n",
    "more of a sum than is looked at": "total = " + "1+" * 120_000 + "1\n",
    "20,000 brackets": "total = " + "(" * 20_000 + ")" * 20_000 + "\n",
}
TOO_DEEP = "something is nested too deeply for Python to read, such as a sum of thousands of terms."


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED)
def test_a_file_too_deep_for_python_is_told_so_and_not_that_a_function_calls_itself(
    grade: Callable[[Path], ExerciseResult], tmp_path: Path, nested: str
) -> None:
    path = tmp_path / f"{STEM}.py"
    path.write_text(nested + RIGHT)
    (evidence,) = {check.evidence for check in grade(path).checks}
    assert re.fullmatch(
        f"The file cannot be imported: it raised SyntaxError( on line 1)?: {re.escape(TOO_DEEP)}", evidence
    )


def test_a_cell_too_deep_for_python_costs_the_others_nothing(
    grade: Callable[[Path], ExerciseResult], tmp_path: Path
) -> None:
    cells = [code(NESTED["a sum of 60,000 terms"]), code(RIGHT)]
    result = grade(written(tmp_path, {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert result.score == result.max_score
    assert result.note == f"A code cell did not run to its end: it raised SyntaxError: {TOO_DEEP}"


def test_names_that_every_notebook_has_cost_nothing(grade: Callable[[Path], ExerciseResult], tmp_path: Path) -> None:
    asks = "IN_COLAB = 'google.colab' in str(get_ipython())\n"
    cells = [code(asks + RIGHT.replace("    assert", "    display(x, clear=True)\n    assert"))]
    result = grade(written(tmp_path, {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert (result.score, result.note) == (result.max_score, "")


LONG_LINES = {
    "form feeds": "import torch\n# a\x0cpage\x0cof\x0ceach\x0cof\x0cmany\n",
    "line separators of Unicode": "import torch\n# copied\u2028from\u2028a\u2028page\u2028with\u2029them\n",
    "the line ends of Windows": "import torch\r\n\r\n# a\r\n\r\n# b\r\n",
    "the line ends of an old Mac": "import torch\r\r# a\r\r# b\r",
}


@pytest.mark.parametrize("above", LONG_LINES.values(), ids=LONG_LINES)
def test_what_is_no_line_end_to_python_moves_no_cell(
    grade: Callable[[Path], ExerciseResult], tmp_path: Path, above: str
) -> None:
    """`str.splitlines` ends lines where Python ends none: cells were cut in the middle, and the answer was lost."""
    cells = [code(above), code("%matplotlib inline\n# a\u2028remark\n" + RIGHT), code("oops")]
    result = grade(written(tmp_path, {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert result.score == result.max_score
    assert result.note.startswith("Code cell 3 did not run to its end: it raised NameError")


def test_a_students_own_check_runs_cells_one_by_one_too(
    released: dict, tmp_path: Path, running_mean: Exercise, tiny: Course, box: Box
) -> None:
    released["cells"].append(code("await nothing"))
    source = read_file(written(tmp_path, released), 256)
    result = check_source(read(running_mean.fingerprints), source, box, tiny.limits.for_worker())
    assert result.score == result.max_score
    assert "did not run to its end: it raised" in result.note


def test_an_annotation_of_the_future_holds_for_the_cells_below(
    grade: Callable[[Path], ExerciseResult], released: dict, tmp_path: Path
) -> None:
    released["cells"].insert(0, code("from __future__ import annotations"))
    released["cells"].append(code("def later(x: NotThere) -> NotThereEither:\n    return x"))
    result = grade(written(tmp_path, released))
    assert (result.score, result.note) == (4, "")


def without_metadata(notebook: dict, folder: Path) -> Path:
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    return written(folder, notebook)


def as_script_of_nbconvert(notebook: dict, folder: Path) -> Path:
    notebook["cells"].insert(0, code("%load_ext autoreload\n!pip install torch"))
    as_jupyter_saves_it = {"name": "python", "file_extension": ".py", "nbconvert_exporter": "python"}
    notebook["metadata"]["language_info"] = as_jupyter_saves_it
    path = written(folder, notebook)
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "script", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    path.unlink()
    return folder / f"{STEM}.py"


def as_script_of_jupytext(form: str) -> Callable[[dict, Path], Path]:
    def convert(notebook: dict, folder: Path) -> Path:
        path = folder / f"{STEM}.py"
        path.write_text(jupytext.writes(jupytext.reads(json.dumps(notebook), fmt="ipynb"), fmt=form), encoding="utf-8")
        return path

    return convert


AS_FIRST_RELEASED = """\
# What your answers show, before anybody grades them. In a terminal: course check running_mean
from manyheads.notebook import check_notebook

check_notebook("running_mean")"""


@pytest.mark.parametrize("visible", [None, AS_FIRST_RELEASED], ids=["", "with visible checks as first released"])
@pytest.mark.parametrize(
    "form",
    [
        pytest.param(without_metadata, id="a notebook without metadata"),
        pytest.param(as_script_of_nbconvert, id="nbconvert --to script"),
        pytest.param(as_script_of_jupytext("py:percent"), id="jupytext percent"),
        pytest.param(as_script_of_jupytext("py:light"), id="jupytext light"),
    ],
)
def test_a_right_notebook_has_full_marks_in_whatever_form_it_is_handed_in(
    grade: Callable[[Path], ExerciseResult],
    released: dict,
    tmp_path: Path,
    form: Callable[[dict, Path], Path],
    visible: str | None,
) -> None:
    (checks,) = [cell for cell in released["cells"] if "check_notebook" in "".join(cell["source"])]
    checks["source"] = visible or checks["source"]
    result = grade(form(released, tmp_path))
    assert [c.evidence for c in result.checks if c.outcome != "passed"] == []
    assert (result.score, result.note) == (4, "")


def test_a_line_that_the_notebook_does_not_have_is_not_told(
    grade: Callable[[Path], ExerciseResult], released: dict, tmp_path: Path
) -> None:
    """By its number an attempt could carry out what it saw: here it makes code of its own that says it is the notebook's."""
    forged = f"exec(compile('\\n' * 90000 + 'raise KeyError(1)', '{STEM}.ipynb', 'exec'))"
    released["cells"].append(code(forged))
    result = grade(written(tmp_path, released))
    assert result.score == result.max_score
    assert "did not run to its end: it raised KeyError" in result.note
    assert "90" not in result.note
