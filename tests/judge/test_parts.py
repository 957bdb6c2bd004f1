"""A script or notebook is run part by part: a part that fails does not affect the others."""

import json
import re
import sys
from functools import partial

import jupytext
import pytest

from manyheads.diagnosis.recording_file import read
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.student.check_attempt import check_source
from manyheads.student.hints import which_of
from manyheads.submission.newer_python import PYTHON
from manyheads.submission.read import read_file
from tests.make import BY_SUMS, cases, notebook, read_table, run

TEXTS = read_table("judge/texts_beside_answers.yaml")
STEM = "01_running_mean"
RIGHT = BY_SUMS.removeprefix("import torch\n\n\n")


@pytest.fixture(scope="module")
def judge_without_lines(tiny, box):
    return Judge(tiny, box, Settings(b"parts", lines=False))


@pytest.fixture
def grade_file(judge_without_lines, running_mean):
    """Return a function that grades the script or notebook at a path."""
    return lambda path: judge_without_lines.grade_attempt("ada", running_mean, read_file(path, 256))


def write_notebook(folder, text):
    path = folder / f"{STEM}.ipynb"
    path.write_text(text, encoding="utf-8")
    return path


def as_script(folder, *texts):
    """Write the texts into one script. Return its path."""
    path = folder / f"{STEM}.py"
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def as_cells(folder, *texts):
    """Write a notebook with one code cell for each text. Return its path."""
    return write_notebook(folder, notebook(*texts))


def as_one_cell(folder, *texts):
    return as_cells(folder, "\n".join(texts))


def passes(result):
    """Return whether the result has all four points."""
    return result.score == result.max_score == 4


forms = pytest.mark.parametrize("form", [as_script, as_cells], ids=["script", "cells"])


@pytest.mark.parametrize(
    ("form", "is_above"),
    [(as_script, True), (as_script, False), (as_one_cell, False), (as_cells, True)],
    ids=["above in a script", "below in a script", "below in the same cell", "in a cell above"],
)
@cases("row", TEXTS["fail"])
def test_a_failed_part_beside_a_right_answer_is_noted_and_costs_no_points(
    grade_file, tmp_path, form, is_above, row
):
    texts = (row["text"], RIGHT) if is_above else (RIGHT.rstrip(), row["text"])
    result = grade_file(form(tmp_path, *texts))
    assert passes(result)
    assert result.note.endswith("The lines below ran: only what is defined there is missing.")
    if form is as_script:
        line = 1 if is_above else RIGHT.count("\n") + 1
        note = re.escape(row["note"].format(line=line, next=line + 1))
        pattern = rf"\bLine \d+ (did not run to its end: )?{note}"
        assert re.search(pattern, result.note), result.note
    else:
        assert re.match(
            r"Line \d+ of code cell \d+ (did not run to its end|was left out)", result.note
        )


@pytest.mark.parametrize("is_above", [True, False], ids=["above", "below"])
@cases(
    "part",
    {
        "sleeps": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(0.2)",
        "detaches another process": (
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork():\n"
            "        os._exit(0)\n    time.sleep(0.2)"
        ),
    },
)
def test_a_child_process_of_an_attempt_sends_no_answers(grade_file, tmp_path, part, is_above):
    texts = (part, RIGHT) if is_above else (RIGHT.rstrip(), part)
    result = grade_file(as_script(tmp_path, *texts))
    assert (passes(result), result.note) == (True, "")


LONG_LINES = {
    "form feeds": "import torch\n# a\x0cpage\x0cof\x0ceach\x0cof\x0cmany\n",
    "line separators of Unicode": (
        "import torch\n# copied\u2028from\u2028a\u2028page\u2028with\u2029them\n"
    ),
    "the line ends of Windows": "import torch\r\n\r\n# a\r\n\r\n# b\r\n",
    "the line ends of an old Mac": "import torch\r\r# a\r\r# b\r",
}
DEEP = {
    "a sum of 60,000 terms": "total = " + "1+" * 60_000 + "1\n",
    "60,000 signs": "total = " + "-" * 60_000 + "1\n",
    "more of a sum than is looked at": "total = " + "1+" * 120_000 + "1\n",
    "20,000 brackets": "total = " + "(" * 20_000 + ")" * 20_000 + "\n",
}
TOO_DEEP = "Something is nested too deeply for Python to read, such as a sum of thousands of terms."
ENDED = "Line {} did not run to its end: it raised "
COLAB = "IN_COLAB = 'google.colab' in str(get_ipython())\n"
FORGED = f"exec(compile('\\n' * 90000 + 'raise KeyError(1)', '{STEM}.ipynb', 'exec'))"


@cases(
    "cells, note",
    {
        "a cell that cannot be parsed": (
            ["import torch", "x = (", RIGHT],
            ENDED.format("1 of code cell 2") + "SyntaxError",
        ),
        "a cell that is too deep": (
            [DEEP["a sum of 60,000 terms"], RIGHT],
            ENDED.format("1 of code cell 1") + f"SyntaxError. {TOO_DEEP}",
        ),
        "names that every notebook has": (
            [COLAB + RIGHT.replace("    assert", "    display(x, clear=True)\n    assert")],
            "",
        ),
        "an annotation of the future": (
            [
                "from __future__ import annotations",
                RIGHT,
                "def later(x: NotThere) -> NotThereEither:\n    return x",
            ],
            "",
        ),
        # `str.splitlines` ends lines where Python ends none, and cells were cut in the middle
        **{
            name: (
                [text, "%matplotlib inline\n# a\u2028remark\n" + RIGHT, "oops"],
                ENDED.format("1 of code cell 3") + "NameError",
            )
            for name, text in LONG_LINES.items()
        },
        # a line number could carry out a hidden input
        "a line that the notebook does not have": (
            [RIGHT, FORGED],
            "Line 1 of code cell 2 did not run to its end: it raised KeyError",
        ),
    },
)
def test_a_right_answer_keeps_its_points_in_an_unusual_notebook(grade_file, tmp_path, cells, note):
    result = grade_file(as_cells(tmp_path, *cells))
    assert passes(result)
    assert result.note.startswith(note)
    assert bool(result.note) == bool(note)
    assert "90" not in result.note  # the forged line number is 90001


def test_a_part_that_depends_on_a_failed_one_is_noted_as_a_consequence(grade_file, tmp_path):
    text = f"import matplotlib.pyplot as plt\n{RIGHT}plt.plot([1])\nplt.show(\n    )\noops\noops\n"
    assert grade_file(as_script(tmp_path, text)).note == (
        "Line 1 did not run to its end: there is no module matplotlib where attempts are judged. "
        "Line 5 did not run to its end either: it needs plt. Line 6 did not run to its end "
        "either: it needs plt. 2 more did not run to their end. The lines below ran: only what is "
        "defined there is missing."
    )


WRONG = "import matplotlib\ndef running_mean(x):\n    {}\n"


@cases(
    "form, texts, is_diagnosed",
    {
        "every call needs it": (as_cells, ["x = (\n" + RIGHT, "import torch"], True),
        "nothing else is in the file": (as_script, ["import torhc"], True),
        "another function is in the file": (
            as_script,
            ["import torhc", "def running_maen(x):\n    return x\n"],
            False,
        ),
        "the function is a stub": (as_script, [WRONG.format("raise NotImplementedError")], False),
        "the function is wrong": (as_script, [WRONG.format("return x.cumsum(0) / len(x)")], False),
        "a method is misspelt": (as_script, [WRONG.format("return x.cumsun(0)")], False),
    },
)
def test_a_failed_part_is_diagnosed_only_if_nothing_else_explains_the_failure(
    grade_file, tmp_path, form, texts, is_diagnosed
):
    result = grade_file(form(tmp_path, *texts))
    assert result.score < 4
    if is_diagnosed:
        assert [diagnosed.id for diagnosed in result.diagnosis] == ["load_error"]
        assert all("1 did not run" in c.evidence or "raised" in c.evidence for c in result.checks)
    else:
        assert "load_error" not in [diagnosed.id for diagnosed in result.diagnosis]
        assert "there is no module" in result.note


@forms
@cases("row", TEXTS["unreadable"])
def test_grade_and_check_show_the_message_of_python_about_a_syntax_error(
    grade_file, tiny, running_mean, box, tmp_path, form, row
):
    path = form(tmp_path, "import torch", row["text"] + RIGHT)
    dictionary, limits = read(running_mean.fingerprints), tiny.limits.for_worker()
    checked = check_source(dictionary, read_file(path, 256), box, limits)
    graded = grade_file(path)
    text = f"{graded.note} {graded.checks[0].evidence}".strip()
    assert f"this is not valid Python {PYTHON}. Python says: {row['message']}" in text
    assert f"{checked.note} {checked.checks[0].evidence}".strip().startswith(text)


def test_the_message_of_a_syntax_error_that_an_attempt_raises_is_not_shown(grade_file, tmp_path):
    result = grade_file(as_script(tmp_path, "raise SyntaxError('its own words')\n" + RIGHT))
    assert "it raised SyntaxError on line 1" in result.note
    assert "own words" not in result.model_dump_json()


@forms
@cases("row", TEXTS["newer"])
def test_newer_syntax_is_reported_with_both_python_versions(grade_file, tmp_path, form, row):
    version = row["version"]
    if sys.version_info >= tuple(map(int, version.split("."))):
        pytest.skip("this Python reads it")
    result = grade_file(form(tmp_path, "import torch", row["text"] + RIGHT))
    (evidence,) = {check.evidence for check in result.checks}
    assert row["construct"] in evidence
    assert f"came with Python {version}, and attempts are run with {PYTHON} here" in evidence
    (diagnosed,) = result.diagnosis
    title = which_of(diagnosed, result).title
    assert title == "Your file has syntax that is newer than the Python that runs it."


def test_the_note_names_the_python_version_that_lacks_an_import(grade_file, tmp_path):
    message_by_name = {
        "overrode_by_all": f"Attempts are run with Python {PYTHON} here, whose typing has no "
        "overrode_by_all: do without it.",
        "Optionl": "Did you mean Optional",
    }
    for name, message in message_by_name.items():
        path = as_script(tmp_path, f"from typing import {name}\n{RIGHT}")
        assert message in grade_file(path).note


@cases("text", DEEP)
def test_a_file_nested_too_deeply_for_python_is_explained(grade_file, tmp_path, text):
    """The evidence must not claim that a function calls itself."""
    (evidence,) = {check.evidence for check in grade_file(as_script(tmp_path, text + RIGHT)).checks}
    pattern = r"It raised SyntaxError( on line 1)?\. (Python says: too many [\w ]+\. )?"
    assert re.fullmatch(pattern + re.escape(TOO_DEEP), evidence)


def test_course_check_also_runs_cells_one_by_one(tmp_path, running_mean, tiny, box):
    source = read_file(as_cells(tmp_path, RIGHT, "await nothing"), 256)
    result = check_source(read(running_mean.fingerprints), source, box, tiny.limits.for_worker())
    assert passes(result)
    assert "did not run to its end: it raised" in result.note


def without_metadata(released, folder):
    """Write the released notebook without the metadata of its cells. Return its path."""
    for cell in released["cells"]:
        cell["metadata"] = {}
    return write_notebook(folder, json.dumps(released))


def as_script_of_nbconvert(released, folder):
    """Convert the released notebook, with two magics, by nbconvert. Return the script's path."""
    magics = json.loads(notebook("%load_ext autoreload\n!pip install torch"))
    released["cells"][:0] = magics["cells"]
    released["metadata"]["language_info"] = {
        "name": "python",
        "file_extension": ".py",
        "nbconvert_exporter": "python",
    }
    for cell in released["cells"]:
        if cell["cell_type"] == "code":
            cell["execution_count"] = None
    path = write_notebook(folder, json.dumps(released))
    completed = run(sys.executable, "-m", "jupyter", "nbconvert", "--to", "script", path)
    assert completed.returncode == 0, completed.stderr
    path.unlink()
    return folder / f"{STEM}.py"


def as_script_of_jupytext(released, folder, form):
    """Convert the released notebook by jupytext. Return the path of the script."""
    text = jupytext.writes(jupytext.reads(json.dumps(released), fmt="ipynb"), fmt=form)
    return as_script(folder, text)


AS_FIRST_RELEASED = """\
# What your answers show, before anybody grades them. In a terminal: course check running_mean
from manyheads.notebook import check_notebook

check_notebook("running_mean")"""


@cases(
    "form, visible_checks",
    {
        "without metadata": (without_metadata, ""),
        "as first released": (without_metadata, AS_FIRST_RELEASED),
        "by nbconvert --to script": (as_script_of_nbconvert, ""),
        "by jupytext as percent": (partial(as_script_of_jupytext, form="py:percent"), ""),
        "by jupytext as light": (
            partial(as_script_of_jupytext, form="py:light"),
            AS_FIRST_RELEASED,
        ),
    },
)
def test_a_right_notebook_earns_all_points_in_every_file_format(
    grade_file, running_mean, tmp_path, form, visible_checks
):
    released = json.loads(running_mean.notebook.read_text(encoding="utf-8"))
    for cell in released["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = RIGHT
        if "check_notebook" in "".join(cell["source"]):
            cell["source"] = visible_checks or cell["source"]
    result = grade_file(form(released, tmp_path))
    assert [check.evidence for check in result.checks if check.outcome != "passed"] == []
    assert (passes(result), result.note) == (True, "")
