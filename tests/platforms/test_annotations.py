"""A check run points at the student's own lines."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import jupytext
import pytest

from manyheads.course import Course
from manyheads.platforms.report_pull_request import annotate
from manyheads.result import ProvedLine, Result
from manyheads.submission import proved_line, read_file

MakeResult = Callable[..., Result]
SCRIPT = "exercises/averages/01_running_mean.py"
STARTED = {("averages", "running_mean"): "01_running_mean.py"}
IN_NOTEBOOK = {("averages", "running_mean"): "01_running_mean.ipynb"}
SOURCE = "import torch\n\n\ndef helper(x):\n    return x\n\n\ndef running_mean(x):\n    return helper(y)\n"


@pytest.fixture
def hand_in(tmp_path: Path) -> Callable[..., Path]:
    """Put files where `course ci collect` puts them."""

    def put(**files: str) -> Path:
        for end, text in files.items():
            path = tmp_path / "ada" / "averages" / f"01_running_mean.{end}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return put


def test_the_line_is_the_one_that_the_evidence_names(tiny, make_result, hand_in):
    result = make_result("error", evidence="raised NameError on line 9: a name is used that is defined nowhere")
    (found,) = annotate(tiny, [result], STARTED, hand_in(py=SOURCE))
    assert found == {
        "path": SCRIPT,
        "start_line": 9,
        "end_line": 9,
        "annotation_level": "warning",
        "title": "01 The running mean: 3 / 4",
        "message": f"{'does thing 0':<64}       0 / 1\n  raised NameError on line 9: a name is used that is defined nowhere\n"
        f"{'3 checks pass':<64}       3 / 3",
    }


def test_the_line_that_is_proved_to_be_wrong_comes_before_the_one_that_the_evidence_names(tiny, make_result, hand_in):
    result = make_result("error", evidence="raised NameError on line 9")
    exercise = result.exercises[0].model_copy(update={"lines": (ProvedLine(line=5, edit="secret → edit"),)})
    (found,) = annotate(tiny, [result.model_copy(update={"exercises": (exercise,)})], STARTED, hand_in(py=SOURCE))
    assert found["start_line"] == 5
    assert "Not right yet (line 5)." in found["message"]
    assert "secret" not in found["message"]
    exercise = result.exercises[0].model_copy(update={"lines": (ProvedLine(line=4000),)})
    (found,) = annotate(tiny, [result.model_copy(update={"exercises": (exercise,)})], STARTED, hand_in(py=SOURCE))
    assert found["start_line"] == 9, "a line beyond the end of the file is not believed"


@pytest.mark.parametrize("evidence", [
    pytest.param("position 3 differs", id="no line"),
    pytest.param("raised ValueError on line 10", id="a line beyond the end"),
    pytest.param("raised ValueError on line 0", id="line 0"),
    pytest.param("raised ValueError on line 99999999999", id="a line that is no number for long"),
    pytest.param("online 2 of them", id="a word that only ends like it"),
])  # fmt: skip
def test_without_one_it_is_the_definition_that_the_exercise_asks_for(tiny, make_result, hand_in, evidence):
    (found,) = annotate(tiny, [make_result("failed", evidence=evidence)], STARTED, hand_in(py=SOURCE))
    assert SOURCE.splitlines()[found["start_line"] - 1] == "def running_mean(x):"


def test_a_file_that_defines_nothing_is_pointed_at_from_its_first_line(tiny, make_result, hand_in):
    (found,) = annotate(tiny, [make_result("error", evidence="nothing")], STARTED, hand_in(py="x = 1\n"))
    assert found["start_line"] == 1


def test_right_attempts_and_untouched_stubs_get_none(tiny, make_result, hand_in):
    assert annotate(tiny, [make_result()], STARTED, hand_in(py=SOURCE)) == []
    assert annotate(tiny, [make_result("error")], {}, hand_in(py=SOURCE)) == []


def test_a_notebooks_line_is_the_one_of_its_file(tiny, make_result, hand_in):
    notebook = jupytext.read(tiny.root / SCRIPT.replace(".py", ".ipynb"))
    cell = next(c for c in notebook.cells if "YOUR CODE HERE" in c.source)
    cell.source = 'def helper(x):\n    return x.means()\n\n\ndef running_mean(x):\n    y = "a \\"b\\" \\\\ ü"\n    return x.means()\n\n\nx = 1'
    text = jupytext.writes(notebook, fmt="ipynb")
    code = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    first, line = (i for i, text in enumerate(code.splitlines(), 1) if text == "    return x.means()")
    folder = hand_in(ipynb=text)
    (found,) = annotate(
        tiny, [make_result("error", evidence=f"raised AttributeError on line {line}")], IN_NOTEBOOK, folder
    )
    assert found["path"] == SCRIPT.replace(".py", ".ipynb")
    assert json.loads(text.splitlines()[found["start_line"] - 1].strip().rstrip(",")) == "    return x.means()\n"
    (earlier,) = annotate(
        tiny, [make_result("error", evidence=f"raised AttributeError on line {first}")], IN_NOTEBOOK, folder
    )
    assert earlier["start_line"] == found["start_line"] - 5
    place = proved_line(read_file(folder / "ada/averages/01_running_mean.ipynb", 400), line).place
    assert re.fullmatch(r"line 7 of code cell [1-9]", place)
    (named,) = annotate(tiny, [make_result("error", evidence=f"raised AttributeError on {place}")], IN_NOTEBOOK, folder)
    assert named["start_line"] == found["start_line"]
    (found,) = annotate(tiny, [make_result("failed", evidence="wrong")], IN_NOTEBOOK, folder)
    assert '"def running_mean(x):\\n"' in text.splitlines()[found["start_line"] - 1]


def test_a_notebook_of_brackets_alone_still_gets_its_remark(tiny, make_result, hand_in):
    """It once ended the whole report: neither a comment nor a check run was written."""
    result = make_result("error", evidence="This is not a notebook that can be read.")
    (found,) = annotate(tiny, [result], IN_NOTEBOOK, hand_in(ipynb='{"cells":\n' + "[" * 200_000))
    assert found["start_line"] == 1


def test_its_text_is_printable_and_bounded(tiny: Course, make_result: MakeResult, hand_in: Callable[..., Path]) -> None:
    result = make_result("failed", evidence="a\x1b[31m\u202eb\n::error::x" + "y" * 9000)
    (found,) = annotate(tiny, [result], STARTED, hand_in(py=SOURCE))
    message = found["message"]
    assert all(c.isprintable() or c == "\n" for c in message)
    assert message.splitlines()[1].startswith("  a [31m b ::error::xyyy")
    assert len(message) < 1000


def test_what_is_not_graded_says_that_and_no_points(tiny, make_result, hand_in):
    (found,) = annotate(tiny, [make_result("skipped", "failed")], STARTED, hand_in(py=SOURCE))
    assert found["title"] == "01 The running mean: not graded"
    assert found["message"].startswith("Not graded: the grader itself failed here. That is not your fault.")
    assert "/" not in found["message"]
