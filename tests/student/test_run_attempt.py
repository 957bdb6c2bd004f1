"""An attempt is run in a box of its own: what cannot be imported, the line that is wrong, and that
of a loop without an end.
"""

from collections.abc import Callable

import pytest

from manyheads.box.connection import Box
from manyheads.box.worker.limits import Limits
from manyheads.course import Course, Exercise
from manyheads.diagnosis.recording_file import read
from manyheads.judge.edit_search import Bounds
from manyheads.result import ExerciseResult, ProvedLine
from manyheads.student import check_attempt as endless
from manyheads.student.check_attempt import check_source
from manyheads.submission import Source
from manyheads.submission.newer_python import PYTHON

Check = Callable[..., ExerciseResult]


@pytest.fixture
def check(tiny: Course, running_mean: Exercise, box: Box) -> Check:
    """What is found of this source."""
    recording, usual = read(running_mean.fingerprints), tiny.limits.for_worker()

    def check(source: str, limits: Limits | None = None, **bounds: Bounds) -> ExerciseResult:
        return check_source(
            recording, Source("01_running_mean.py", source), box, limits or usual, **bounds
        )

    return check


@pytest.mark.parametrize(
    ("source", "evidence"),
    [
        (
            "import torch\ndef running_mean(x)\n    return x\n",
            (
                f"It raised SyntaxError on line 2: this is not valid Python {PYTHON}. Python "
                "says: expected ':'."
            ),
        ),
        (
            "if x = 1: pass\n",
            (
                f"It raised SyntaxError on line 1: this is not valid Python {PYTHON}. Python "
                "says: invalid syntax. Maybe you meant '==' or ':=' instead of '='?"
            ),
        ),
        (
            "def running_mean(x):\nreturn x\n",
            f"It raised IndentationError on line 2: this is not valid Python {PYTHON}. "
            "Python says: expected an indented block after function definition on line 1.",
        ),
        (
            "@a_name_of_nothing\ndef running_mean(x):\n    return x\n",
            (
                "Line 1 did not run to its end: it raised NameError on line 1: a name is used "
                "that has no value there. Python says: name 'a_name_of_nothing' is not defined."
            ),
        ),
        (
            "from torhc import cumsum\n\ndef running_mean(x):\n    return cumsum(x)\n",
            (
                "Line 1 did not run to its end: there is no module torhc where attempts are "
                "judged. Did you mean torch?"
            ),
        ),
    ],
    ids=[
        "syntax",
        "a question",
        "indentation",
        "a definition that raises",
        "an import that all needs",
    ],
)
def test_what_cannot_be_imported_is_told_in_pythons_words(check, source, evidence):
    result = check(source)
    assert {check.evidence for check in result.checks} == {evidence}
    assert [diagnosed.id for diagnosed in result.diagnosis] == ["load_error"]


WRONG = """\
import torch


def running_mean(x):
    if x.numel() == 0:
        raise ValueError("no numbers")
    counts = torch.arange(0, len(x) + 1, dtype=x.dtype)
    return x.cumsum(0) / counts
"""
PATIENT = Bounds(seconds=60.0)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(WRONG, [7], id="an exception"),
        pytest.param(
            WRONG.replace("arange(0,", "arange(1,").replace("/ counts", "* counts"),
            [8],
            id="other numbers",
        ),
        pytest.param(
            WRONG.replace("arange(0,", "arange(1,").replace("cumsum(0)", "cumsum(0).detach()"),
            [8],
            id="a gradient that is cut",
        ),
        pytest.param(WRONG.replace("arange(0,", "arange(1,"), [], id="right"),
        pytest.param(WRONG.replace("== 0", "== 9"), [], id="two mistakes"),
        pytest.param("def running_mean(x):\n    raise NotImplementedError\n", [], id="a stub"),
    ],
)
def test_the_line_that_is_proved_wrong_is_told_without_what_to_write_there(check, text, lines):
    assert check(text, bounds=PATIENT).lines == tuple(ProvedLine(line=line) for line in lines)


@pytest.mark.parametrize(
    ("body", "evidence"),
    [
        (
            "return x.running_mean()",
            (
                "raised AttributeError on line 2. Python says: 'Tensor' object has no attribute "
                "'running_mean'"
            ),
        ),
        (
            "raise NotImplementedError('yours')",
            "raised NotImplementedError on line 2: nothing is written here yet",
        ),
        ("raise ValueError", "raised ValueError on line 2"),
    ],
    ids=["known to Python", "a stub's", "without words"],
)
def test_what_a_function_raises_is_told_in_pythons_words(check, body, evidence):
    assert check(f"def running_mean(x):\n    {body}\n").checks[0].evidence == evidence


LOOPING = "import torch\nimport time\n\n\ndef running_mean(x):\n    i = 0\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            "    while i < 3:\n        x = x + 1\n    return x\n",
            "It was still in the loop on line 7 when its time was up: does it end?",
            id="a loop",
        ),
        pytest.param(
            "    return time.sleep(60)\n", "It did not come back from line 7.", id="no loop"
        ),
        pytest.param(
            (
                "    while True:\n        try:\n            time.sleep(9)\n"
                "        except BaseException:\n            pass\n"
            ),
            "No answer within ",
            id="a loop that hears nothing",
        ),
    ],
)
def test_the_line_of_the_loop_is_told(check, monkeypatch, body, said):
    monkeypatch.setattr(endless, "WAITED", 0.2)
    result = check(LOOPING + body, Limits(seconds_per_call=0.6, seconds_per_attempt=1.2))
    assert result.functions[0].evidence.startswith(said)
    assert {check.outcome for check in result.checks} == {"timeout"}


@pytest.mark.parametrize(
    "loop",
    ["while True:\n    pass\n", "sum(range(10**12))\n"],
    ids=["a loop", "one that hears nothing"],
)
def test_a_part_of_the_file_that_takes_too_long_is_told_and_costs_nothing(check, loop):
    solution = (
        "def running_mean(x):\n    assert len(x)\n"
        "    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n"
    )
    result = check(f"{loop}{solution}", Limits(seconds_per_call=0.6))
    assert {check.outcome for check in result.checks} == {"passed"}
    assert result.note.startswith("Line 1 was left out: it was still at work after")


def test_a_call_below_a_part_that_takes_too_long_is_told_with_its_line_too(check):
    source = (
        f"import time\ntime.sleep(60)\n{LOOPING}    while i < 3:\n        x = x + 1\n    return x\n"
    )
    result = check(source, Limits(seconds_per_call=0.6))
    assert result.functions[0].evidence.startswith(
        "It was still in the loop on line 9 when its time was up"
    )
