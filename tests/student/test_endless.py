"""A loop without an end is told with its line, on the student's own machine."""

import pytest

from manyheads.box.level import Box
from manyheads.box.worker.limits import Limits
from manyheads.course import Exercise
from manyheads.diagnosis.recording_file import read
from manyheads.student import check_attempt as endless
from manyheads.student.check_attempt import check_source
from manyheads.submission import AttemptSource

HEAD = "import torch\nimport time\n\n\ndef running_mean(x):\n    i = 0\n"


@pytest.mark.parametrize(("body", "said"), [
    pytest.param("    while i < 3:\n        x = x + 1\n    return x\n", "It was still in the loop on line 7 when its time was up: does it end?", id="a loop"),
    pytest.param("    return time.sleep(60)\n", "It did not come back from line 7.", id="no loop"),
    pytest.param("    while True:\n        try:\n            time.sleep(9)\n        except BaseException:\n            pass\n", "No answer within ", id="a loop that hears nothing"),
])  # fmt: skip
def test_the_line_of_the_loop_is_told(running_mean, box, monkeypatch, body, said):
    monkeypatch.setattr(endless, "WAITED", 0.2)
    limits = Limits(seconds_per_call=0.6, seconds_per_attempt=1.2)
    result = check_source(
        read(running_mean.fingerprints), AttemptSource("01_running_mean.py", HEAD + body), box, limits
    )
    assert result.functions[0].evidence.startswith(said)
    assert {check.outcome for check in result.checks} == {"timeout"}


@pytest.mark.parametrize(
    "loop", ["while True:\n    pass\n", "sum(range(10**12))\n"], ids=["a loop", "one that hears nothing"]
)
def test_a_part_of_the_file_that_takes_too_long_is_told_and_costs_nothing(running_mean, box, loop):
    right = "def running_mean(x):\n    assert len(x)\n    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)\n"
    attempt = AttemptSource("01_running_mean.py", f"{loop}{right}")
    result = check_source(read(running_mean.fingerprints), attempt, box, Limits(seconds_per_call=0.6))
    assert {check.outcome for check in result.checks} == {"passed"}
    assert result.note.startswith("Line 1 was left out: it was still at work after")


def test_a_call_below_a_part_that_takes_too_long_is_told_with_its_line_too(running_mean: Exercise, box: Box) -> None:
    source = f"import time\ntime.sleep(60)\n{HEAD}    while i < 3:\n        x = x + 1\n    return x\n"
    attempt = AttemptSource("01_running_mean.py", source)
    result = check_source(read(running_mean.fingerprints), attempt, box, Limits(seconds_per_call=0.6))
    assert result.functions[0].evidence.startswith("It was still in the loop on line 9 when its time was up")
