"""A script and a notebook are judged alike, part by part, and forms in which a notebook is handed
in cost nothing.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jupytext
import pytest

from manyheads.box.connection import Box
from manyheads.course import Course, Exercise
from manyheads.diagnosis.recording_file import read
from manyheads.judge.grade_submission import Judge, Settings
from manyheads.result import ExerciseResult
from manyheads.student.check_attempt import check_source
from manyheads.student.hints import which_of
from manyheads.submission.newer_python import PYTHON
from manyheads.submission.read import read_file

STEM = "01_running_mean"
RIGHT = (
    "def running_mean(x):\n    assert len(x)\n"
    "    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n"
)


@pytest.fixture(scope="module")
def judge(tiny: Course, box: Box) -> Judge:
    return Judge(tiny, box, Settings(b"parts"))


@pytest.fixture
def released_notebook(running_mean: Exercise) -> dict:
    """The released notebook with a right answer in it."""
    notebook = json.loads(running_mean.notebook.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = RIGHT
    return notebook


@pytest.fixture
def grade(judge: Judge, running_mean: Exercise, tmp_path: Path) -> Callable[[Path], ExerciseResult]:
    return lambda path: judge.grade_attempt("ada", running_mean, read_file(path, 256))


def write_notebook(folder: Path, notebook: dict) -> Path:
    path = folder / f"{STEM}.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def code(source: str) -> dict:
    return {
        "cell_type": "code",
        "source": source,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }


SCRATCH = {
    "a plot": (
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])",
        "there is no module matplotlib where attempts are judged.",
    ),
    "Colab's mount": (
        "from google.colab import drive\ndrive.mount('/content/drive')",
        "there is no module google where attempts are judged.",
    ),
    "a name that is not there": (
        "print(undefined)",
        "it raised NameError on line {line}: a name is used that has no value there.",
    ),
    "a test of one's own that fails": ("assert running_mean(3) == 4", "it raised"),
    "an exit": ("exit()", "it raised"),
    "sys.exit": (
        "import sys; sys.exit('done')",
        "it raised SystemExit on line {line}: the code asked Python to exit.",
    ),
    "SystemExit with words": (
        "raise SystemExit('all tests passed')",
        "it raised SystemExit on line {line}: the code asked Python to exit.",
    ),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", "it raised KeyboardInterrupt on line {line}."),
    "an exception of one's own that is no Exception": (
        "class Stop(BaseException): pass\nraise Stop",
        "it raised BaseException on line {line + 1}.",
    ),
    "input": ("n = int(input())", "it raised EOFError on line {line}: input() waits"),
    "a tensor that is too large": (
        "import torch; torch.empty(2**44)",
        "it raised RuntimeError on line {line}: more memory was asked for",
    ),
    "a sleep": (
        "import time; time.sleep(60)",
        "was left out: it was still at work after 1 seconds.",
    ),
    "a long training": (
        "i = 0\nwhile True:\n    i += 1",
        "was left out: it was still at work after 1 seconds.",
    ),
    "an end of the process": (
        "import os; os._exit(0)",
        "was left out: it ended the whole process.",
    ),
}


def notebook_of(*sources: str) -> dict:
    return {
        "cells": [code(source) for source in sources],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def as_script(folder: Path, *texts: str) -> Path:
    path = folder / f"{STEM}.py"
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def as_one_cell(folder: Path, *texts: str) -> Path:
    return write_notebook(folder, notebook_of("\n".join(texts)))


def as_cells(folder: Path, *texts: str) -> Path:
    return write_notebook(folder, notebook_of(*texts))


@pytest.mark.parametrize(
    "form", [as_script, as_one_cell, as_cells], ids=["script", "one cell", "cells"]
)
@pytest.mark.parametrize("above", [True, False], ids=["above the answers", "below them"])
@pytest.mark.parametrize(("scratch", "told"), SCRATCH.values(), ids=SCRATCH)
def test_what_fails_beside_a_right_answer_costs_nothing_and_is_told(
    grade, tmp_path, form, above, scratch, told
):
    result = grade(form(tmp_path, *((scratch, RIGHT) if above else (RIGHT.rstrip(), scratch))))
    assert result.score == result.max_score
    if form is as_script:
        line = 1 if above else RIGHT.count("\n") + 1
        expected = told.replace("{line + 1}", str(line + 1)).replace("{line}", str(line))
        assert re.search(
            rf"\bLine \d+ (did not run to its end: )?{re.escape(expected)}", result.note
        ), result.note
    else:
        assert re.match(
            r"Line \d+ of code cell \d+ (did not run to its end|was left out)", result.note
        )
    assert result.note.endswith("The lines below ran: only what is defined there is missing.")


FORKS = {
    "a child that sleeps": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(0.2)"
    ),
    "a child that detaches another": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork():\n"
        "        os._exit(0)\n    time.sleep(0.2)"
    ),
}


@pytest.mark.parametrize("above", [True, False], ids=["above the answers", "below them"])
@pytest.mark.parametrize("forks", FORKS.values(), ids=FORKS)
def test_a_child_that_a_file_leaves_behind_answers_nobody(grade, tmp_path, above, forks):
    result = grade(as_script(tmp_path, *((forks, RIGHT) if above else (RIGHT.rstrip(), forks))))
    assert (result.score, result.note) == (result.max_score, "")


def test_what_only_follows_from_a_part_that_failed_is_told_as_that(grade, tmp_path):
    text = f"import matplotlib.pyplot as plt\n{RIGHT}plt.plot([1])\nplt.show(\n    )\noops\noops\n"
    assert grade(as_script(tmp_path, text)).note == (
        "Line 1 did not run to its end: there is no module matplotlib where attempts are judged. "
        "Line 5 did not run to its end either: it needs plt. Line 6 did not run to its end "
        "either: it needs plt. 2 more did not run to their end. The lines below ran: only what is "
        "defined there is missing."
    )


def test_a_cell_that_cannot_be_parsed_costs_the_others_nothing(grade, tmp_path):
    result = grade(write_notebook(tmp_path, notebook_of("import torch", "x = (", RIGHT)))
    assert (result.score, result.max_score) == (4, 4)
    assert result.note.startswith(
        "Line 1 of code cell 2 did not run to its end: it raised SyntaxError"
    )


def test_where_every_call_wants_for_what_a_part_did_not_define_the_file_is_to_blame(
    grade, tmp_path
):
    result = grade(write_notebook(tmp_path, notebook_of("x = (\n" + RIGHT, "import torch")))
    assert result.score == 0
    (evidence,) = {check.evidence for check in result.checks}
    assert evidence.startswith(
        "Line 1 of code cell 1 did not run to its end: it raised SyntaxError"
    )
    assert [d.id for d in result.diagnosis] == ["load_error"]


def test_a_file_that_has_nothing_beside_a_part_that_failed_is_to_blame(grade, tmp_path):
    for below, named in (("", "load_error"), ("def running_maen(x):\n    return x\n", "interface")):
        assert [d.id for d in grade(as_script(tmp_path, "import torhc", below)).diagnosis] == [
            named
        ]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("raise NotImplementedError", id="a stub"),
        pytest.param("return x.cumsum(0) / len(x)", id="a wrong answer"),
        pytest.param("return x.cumsun(0)", id="a misspelt method"),
    ],
)
def test_a_part_that_has_nothing_to_do_with_it_is_not_to_blame(grade, tmp_path, source):
    result = grade(as_script(tmp_path, f"import matplotlib\ndef running_mean(x):\n    {source}\n"))
    assert "load_error" not in [d.id for d in result.diagnosis]
    assert "there is no module matplotlib" in result.note


UNREAD = {
    "a no-break space": ("x =\u00a01\n", "invalid non-printable character U+00A0"),
    "curly quotes": ("x = “a”\n", "invalid character '“' (U+201C)"),
    "a zero-width space": ("x = a\u200b\n", "invalid non-printable character U+200B"),
    "full-width brackets": ("print（1）\n", "invalid character '（' (U+FF08)"),
    "Ctrl-Z": ("x = 1\n\x1a\n", "invalid non-printable character U+001A"),
    "a tab beside blanks": (
        "if 1:\n        x = 1\n\ty = 1\n",
        "inconsistent use of tabs and spaces in indentation",
    ),
    "a colon": ("def f(x)\n    return x\n", "expected ':'"),
    "a question": (
        "if x = 1: pass\n",
        "invalid syntax. Maybe you meant '==' or ':=' instead of '='?",
    ),
    "a return outside": ("return 1\n", "'return' outside function"),
}


@pytest.mark.parametrize("is_notebook", [False, True], ids=["script", "notebook"])
@pytest.mark.parametrize(("text", "says"), UNREAD.values(), ids=UNREAD)
def test_what_python_cannot_read_is_told_in_its_words_where_it_is_graded_and_at_home(
    grade, tiny, running_mean, box, tmp_path, text, says, is_notebook
):
    path = (
        write_notebook(tmp_path, notebook_of("import torch", text + RIGHT))
        if is_notebook
        else as_script(tmp_path, text)
    )
    at_home = check_source(
        read(running_mean.fingerprints), read_file(path, 256), box, tiny.limits.for_worker()
    )
    graded, home_note = (
        f"{result.note} {result.checks[0].evidence}".strip() for result in (grade(path), at_home)
    )
    assert f"this is not valid Python {PYTHON}. Python says: {says}" in graded
    assert home_note.startswith(graded)


def test_words_that_an_attempt_gives_a_syntax_error_of_its_own_are_not_shown(grade, tmp_path):
    result = grade(as_script(tmp_path, "raise SyntaxError('its own words')\n" + RIGHT))
    assert "it raised SyntaxError on line 1" in result.note
    assert "own words" not in result.model_dump_json()


NEWER = {
    "an f-string": ('x = f"{", ".join(["a"])}"\n', "f-string", "3.12"),
    "type parameters": ("def f[T](x):\n    return x\n", "Parameters in square brackets", "3.12"),
    "exceptions": ("try:\n    pass\nexcept ValueError, KeyError:\n    pass\n", "`except`", "3.14"),
}


@pytest.mark.parametrize("is_notebook", [False, True], ids=["script", "notebook"])
@pytest.mark.parametrize(("text", "what", "since"), NEWER.values(), ids=NEWER)
def test_newer_syntax_is_told_with_the_version_that_judges(
    grade, tmp_path, text, what, since, is_notebook
):
    if sys.version_info >= tuple(map(int, since.split("."))):
        pytest.skip("this Python reads it")
    path = (
        write_notebook(tmp_path, notebook_of("import torch", text + RIGHT))
        if is_notebook
        else as_script(tmp_path, text)
    )
    result = grade(path)
    (evidence,) = {check.evidence for check in result.checks}
    assert what in evidence
    assert f"came with Python {since}, and attempts are run with {PYTHON} here" in evidence
    (named,) = result.diagnosis
    assert (
        which_of(named, result).title
        == "Your file has syntax that is newer than the Python that runs it."
    )


def test_what_a_module_of_an_older_python_lacks_is_told_with_its_version(grade, tmp_path):
    message = (
        f"Attempts are run with Python {PYTHON} here, whose typing has no overrode_by_all: do "
        "without it."
    )
    assert (
        message in grade(as_script(tmp_path, "from typing import overrode_by_all\n" + RIGHT)).note
    )
    assert (
        "Did you mean Optional"
        in grade(as_script(tmp_path, "from typing import Optionl\n" + RIGHT)).note
    )


NESTED = {
    "a sum of 60,000 terms": "total = " + "1+" * 60_000 + "1\n",
    "60,000 signs": "total = " + "-" * 60_000 + "1\n",
    "more of a sum than is looked at": "total = " + "1+" * 120_000 + "1\n",
    "20,000 brackets": "total = " + "(" * 20_000 + ")" * 20_000 + "\n",
}
TOO_DEEP = "Something is nested too deeply for Python to read, such as a sum of thousands of terms."


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED)
def test_a_file_too_deep_for_python_is_told_so_and_not_that_a_function_calls_itself(
    grade, tmp_path, nested
):
    (evidence,) = {check.evidence for check in grade(as_script(tmp_path, nested + RIGHT)).checks}
    assert re.fullmatch(
        (
            r"It raised SyntaxError( on line 1)?\. (Python says: too many [\w ]+\. )"
            rf"?{re.escape(TOO_DEEP)}"
        ),
        evidence,
    )


def test_a_cell_too_deep_for_python_costs_the_others_nothing(grade, tmp_path):
    result = grade(write_notebook(tmp_path, notebook_of(NESTED["a sum of 60,000 terms"], RIGHT)))
    assert result.score == result.max_score
    assert result.note.startswith(
        f"Line 1 of code cell 1 did not run to its end: it raised SyntaxError. {TOO_DEEP}"
    )


def test_names_that_every_notebook_has_cost_nothing(
    grade: Callable[[Path], ExerciseResult], tmp_path: Path
) -> None:
    asks = "IN_COLAB = 'google.colab' in str(get_ipython())\n"
    shows = RIGHT.replace("    assert", "    display(x, clear=True)\n    assert")
    result = grade(write_notebook(tmp_path, notebook_of(asks + shows)))
    assert (result.score, result.note) == (result.max_score, "")


LONG_LINES = {
    "form feeds": "import torch\n# a\x0cpage\x0cof\x0ceach\x0cof\x0cmany\n",
    "line separators of Unicode": (
        "import torch\n# copied\u2028from\u2028a\u2028page\u2028with\u2029them\n"
    ),
    "the line ends of Windows": "import torch\r\n\r\n# a\r\n\r\n# b\r\n",
    "the line ends of an old Mac": "import torch\r\r# a\r\r# b\r",
}


@pytest.mark.parametrize("above", LONG_LINES.values(), ids=LONG_LINES)
def test_what_is_no_line_end_to_python_moves_no_cell(grade, tmp_path, above):
    """`str.splitlines` ends lines where Python ends none: cells were cut in the middle, and the
    answer was lost.
    """
    result = grade(
        write_notebook(
            tmp_path, notebook_of(above, "%matplotlib inline\n# a\u2028remark\n" + RIGHT, "oops")
        )
    )
    assert result.score == result.max_score
    assert result.note.startswith(
        "Line 1 of code cell 3 did not run to its end: it raised NameError"
    )


def test_course_check_runs_cells_one_by_one_too(
    released_notebook, tmp_path, running_mean, tiny, box
):
    released_notebook["cells"].append(code("await nothing"))
    source = read_file(write_notebook(tmp_path, released_notebook), 256)
    result = check_source(read(running_mean.fingerprints), source, box, tiny.limits.for_worker())
    assert result.score == result.max_score
    assert "did not run to its end: it raised" in result.note


def test_an_annotation_of_the_future_holds_for_the_cells_below(grade, released_notebook, tmp_path):
    released_notebook["cells"].insert(0, code("from __future__ import annotations"))
    released_notebook["cells"].append(
        code("def later(x: NotThere) -> NotThereEither:\n    return x")
    )
    result = grade(write_notebook(tmp_path, released_notebook))
    assert (result.score, result.note) == (4, "")


def without_metadata(notebook: dict, folder: Path) -> Path:
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    return write_notebook(folder, notebook)


def as_script_of_nbconvert(notebook: dict, folder: Path) -> Path:
    notebook["cells"].insert(0, code("%load_ext autoreload\n!pip install torch"))
    as_jupyter_saves_it = {
        "name": "python",
        "file_extension": ".py",
        "nbconvert_exporter": "python",
    }
    notebook["metadata"]["language_info"] = as_jupyter_saves_it
    path = write_notebook(folder, notebook)
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "script", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    path.unlink()
    return folder / f"{STEM}.py"


def as_script_of_jupytext(notebook: dict, folder: Path, form: str) -> Path:
    return as_script(
        folder, jupytext.writes(jupytext.reads(json.dumps(notebook), fmt="ipynb"), fmt=form)
    )


AS_FIRST_RELEASED = """\
# What your answers show, before anybody grades them. In a terminal: course check running_mean
from manyheads.notebook import check_notebook

check_notebook("running_mean")"""


@pytest.mark.parametrize(
    "visible", [None, AS_FIRST_RELEASED], ids=["", "with visible checks as first released"]
)
@pytest.mark.parametrize(
    "form",
    [
        pytest.param(without_metadata, id="a notebook without metadata"),
        pytest.param(as_script_of_nbconvert, id="nbconvert --to script"),
        pytest.param(partial(as_script_of_jupytext, form="py:percent"), id="jupytext percent"),
        pytest.param(partial(as_script_of_jupytext, form="py:light"), id="jupytext light"),
    ],
)
def test_a_right_notebook_has_full_marks_in_whatever_form_it_is_handed_in(
    grade, released_notebook, tmp_path, form, visible
):
    (checks,) = [
        cell for cell in released_notebook["cells"] if "check_notebook" in "".join(cell["source"])
    ]
    checks["source"] = visible or checks["source"]
    result = grade(form(released_notebook, tmp_path))
    assert [c.evidence for c in result.checks if c.outcome != "passed"] == []
    assert (result.score, result.note) == (4, "")


def test_a_line_that_the_notebook_does_not_have_is_not_told(grade, released_notebook, tmp_path):
    """By its number an attempt could carry out what it saw: here it makes code of its own that says
    it is the notebook's.
    """
    forged = f"exec(compile('\\n' * 90000 + 'raise KeyError(1)', '{STEM}.ipynb', 'exec'))"
    released_notebook["cells"].append(code(forged))
    result = grade(write_notebook(tmp_path, released_notebook))
    assert result.score == result.max_score
    assert "did not run to its end: it raised KeyError" in result.note
    assert "90" not in result.note
