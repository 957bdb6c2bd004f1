"""A loop without an end is told with its line, on the student's own machine."""

from __future__ import annotations

import pytest

from manyheads.box.level import Box
from manyheads.box.worker.limits import Limits
from manyheads.course import Exercise
from manyheads.public import endless
from manyheads.public.attempt import check_source
from manyheads.public.file import read
from manyheads.submission import AttemptSource

HEAD = "import torch\nimport time\n\n\ndef running_mean(x):\n    i = 0\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param("    while i < 3:\n        x = x + 1\n    return x\n", "The loop on line 7 goes round without end.", id="a loop"),
        pytest.param("    return time.sleep(60)\n", "It did not come back from line 7.", id="no loop"),
        pytest.param("    while True:\n        try:\n            time.sleep(9)\n        except BaseException:\n            pass\n", "No answer within ", id="a loop that hears nothing"),
    ],
)  # fmt: skip
def test_the_line_of_the_loop_is_told(
    running_mean: Exercise, box: Box, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    monkeypatch.setattr(endless, "WAITED", 0.2)
    limits = Limits(seconds_per_call=0.6, seconds_per_attempt=1.2)
    result = check_source(
        read(running_mean.fingerprints), AttemptSource("01_running_mean.py", HEAD + body), box, limits
    )
    assert result.functions[0].evidence.startswith(said)
    assert {check.outcome for check in result.checks} == {"timeout"}
