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
        pytest.param("    while i < 3:\n        x = x + 1\n    return x\n", "It was still in the loop on line 7 when its time was up: does it end?", id="a loop"),
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


@pytest.mark.parametrize(
    ("source", "cells", "said"),
    [
        pytest.param(f"from __future__ import annotations\n{HEAD}    return x\n\n\nn = 1\nwhile n:\n    n += 1\n", (), "It was still in the loop on line 12 when its time was up: does it end?", id="a loop"),
        pytest.param("import time\n\nn = 1\nwhile n:\n    n += 1\n", (1, 3), "It was still in the loop on line 2 of code cell 2 when its time was up: does it end?", id="a loop in a notebook"),
        pytest.param("import time\ntime.sleep(60)\n", (), "It did not come back from line 2.", id="no loop"),
        pytest.param("while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass\n", (), "No answer within ", id="a loop that hears nothing"),
    ],
)  # fmt: skip
def test_the_line_of_a_loop_during_the_import_is_told(
    running_mean: Exercise,
    box: Box,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    cells: tuple[int, ...],
    said: str,
) -> None:
    monkeypatch.setattr(endless, "WAITED", 0.2)
    attempt = AttemptSource("01_running_mean.py", source, cells=cells)
    result = check_source(read(running_mean.fingerprints), attempt, box, Limits(seconds_per_call=0.6))
    assert result.checks[0].evidence.startswith(f"While the file was imported: {said}")
    assert {check.outcome for check in result.checks} == {"timeout"}
