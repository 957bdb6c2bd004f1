"""An attempt runs in a sandbox; import errors, wrong lines and endless loops are reported."""

import pytest

from manyheads.box.worker.limits import Limits
from manyheads.diagnosis.recording_file import read
from manyheads.judge.edit_search import Bounds
from manyheads.result import ProvedLine
from manyheads.student import check_attempt
from manyheads.submission import Source
from manyheads.submission.newer_python import PYTHON

FUNCTION_HEAD = "def running_mean(x):\n"
NOT_VALID = f"this is not valid Python {PYTHON}. Python says: "


@pytest.fixture
def check_text(tiny, running_mean, box):
    """Return a function that checks a source in a new process."""
    recording, default_limits = read(running_mean.fingerprints), tiny.limits.for_worker()

    def check(source: str, limits: Limits = default_limits, **bounds: Bounds):
        attempt = Source("01_running_mean.py", source)
        return check_attempt.check_source(recording, attempt, box, limits, **bounds)

    return check


@pytest.mark.parametrize(
    ("source", "evidence"),
    [
        (
            "import torch\ndef running_mean(x)\n    return x\n",
            f"It raised SyntaxError on line 2: {NOT_VALID}expected ':'.",
        ),
        (
            "if x = 1: pass\n",
            f"It raised SyntaxError on line 1: {NOT_VALID}invalid syntax. "
            "Maybe you meant '==' or ':=' instead of '='?",
        ),
        (
            FUNCTION_HEAD + "return x\n",
            f"It raised IndentationError on line 2: {NOT_VALID}"
            "expected an indented block after function definition on line 1.",
        ),
        (
            f"@a_name_of_nothing\n{FUNCTION_HEAD}    return x\n",
            "Line 1 did not run to its end: it raised NameError on line 1: a name is used "
            "that has no value there. Python says: name 'a_name_of_nothing' is not defined.",
        ),
        (
            f"from torhc import cumsum\n\n{FUNCTION_HEAD}    return cumsum(x)\n",
            "Line 1 did not run to its end: there is no module torhc where attempts are "
            "judged. Did you mean torch?",
        ),
    ],
)
def test_an_import_error_is_reported_with_pythons_message(check_text, source, evidence):
    result = check_text(source)
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
RIGHT = WRONG.replace("arange(0,", "arange(1,")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(WRONG, [7], id="an exception"),
        pytest.param(RIGHT.replace("/ counts", "* counts"), [8], id="other numbers"),
        pytest.param(RIGHT.replace("m(0)", "m(0).detach()"), [8], id="a gradient that is cut"),
        pytest.param(RIGHT, [], id="right"),
        pytest.param(WRONG.replace("== 0", "== 9"), [], id="two mistakes"),
        pytest.param(FUNCTION_HEAD + "    raise NotImplementedError\n", [], id="a stub"),
    ],
)
def test_the_wrong_line_is_reported_without_its_correction(check_text, text, lines):
    result = check_text(text, bounds=Bounds(seconds=60.0))
    assert result.lines == tuple(ProvedLine(line=line) for line in lines)


@pytest.mark.parametrize(
    ("statement", "evidence"),
    [
        (
            "return x.running_mean()",
            "raised AttributeError on line 2. Python says: 'Tensor' object has no attribute "
            "'running_mean'",
        ),
        (
            "raise NotImplementedError('yours')",
            "raised NotImplementedError on line 2: nothing is written here yet",
        ),
        ("raise ValueError", "raised ValueError on line 2"),
    ],
)
def test_an_exception_is_reported_with_pythons_message(check_text, statement, evidence):
    assert check_text(f"{FUNCTION_HEAD}    {statement}\n").checks[0].evidence == evidence


BEFORE_LOOP = f"import torch\nimport time\n\n\n{FUNCTION_HEAD}    i = 0\n"
LOOP = "    while i < 3:\n        x = x + 1\n    return x\n"


@pytest.mark.parametrize(
    ("source", "message_start"),
    [
        pytest.param(
            BEFORE_LOOP + LOOP,
            "It was still in the loop on line 7 when its time was up: does it end?",
            id="a loop",
        ),
        pytest.param(
            BEFORE_LOOP + "    return time.sleep(60)\n",
            "It did not come back from line 7.",
            id="no loop",
        ),
        pytest.param(
            BEFORE_LOOP + "    while True:\n        try:\n            time.sleep(9)\n"
            "        except BaseException:\n            pass\n",
            "No answer within ",
            id="a loop that catches every signal",
        ),
    ],
)
def test_a_call_that_does_not_end_is_reported_with_its_line(
    check_text, monkeypatch, source, message_start
):
    monkeypatch.setattr(check_attempt, "WAITED", 0.2)
    result = check_text(source, Limits(seconds_per_call=0.6, seconds_per_attempt=1.2))
    assert result.functions[0].evidence.startswith(message_start)
    assert {check.outcome for check in result.checks} == {"timeout"}


@pytest.mark.parametrize("loop", ["while True:\n    pass\n", "sum(range(10**12))\n"])
def test_a_slow_top_level_statement_is_left_out_and_costs_no_points(check_text, loop):
    result = check_text(loop + RIGHT, Limits(seconds_per_call=0.6))
    assert {check.outcome for check in result.checks} == {"passed"}
    assert result.note.startswith("Line 1 was left out: it was still at work after")


def test_an_endless_loop_is_reported_with_its_line_after_a_slow_statement(check_text):
    source = f"import time\ntime.sleep(60)\n{BEFORE_LOOP}{LOOP}"
    result = check_text(source, Limits(seconds_per_call=0.6))
    message_start = "It was still in the loop on line 9 when its time was up"
    assert result.functions[0].evidence.startswith(message_start)
