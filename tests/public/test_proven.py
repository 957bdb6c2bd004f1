"""What an answer proves by itself is named on a student's machine, whatever mutants answer."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from manyheads.checks.local import LocalRecordingRunner
from manyheads.course import load_course
from manyheads.public.check import check_attempt
from manyheads.public.file import read

COURSE = load_course(Path(__file__).parents[2])
EXERCISE = next(each for each in COURSE.exercises if each.id == "sliding_window")
RIGHT = """import math
import torch

def window_mask(T_q, T_k, window, device=None):
    if window < 1 or T_q > T_k:
        raise ValueError(f"{T_q}, {T_k}, {window}")
    ones = torch.ones(T_q, T_k, dtype=torch.bool, device=device)
    return ones.tril(T_k - T_q) & ones.triu(T_k - T_q - window + 1)

def local_attention(q, k, v, window):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    mask = window_mask(q.shape[-2], k.shape[-2], window, q.device)
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v
"""


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        pytest.param("", "", [], id="nothing"),
        pytest.param("window < 1 or", "window < 0 or", ["argument_unchecked"], id="one of two refusals"),
        pytest.param(", device=device", "", ["hard_coded_device"], id="a device"),
        pytest.param("q @ k.mT", "q @ k.mul_(2).div_(2).add_(1e-12).mT", ["input_mutated"], id="a changed argument"),
    ],
)
def test_an_answer_that_says_it_is_named(monkeypatch: pytest.MonkeyPatch, old: str, new: str, named: list[str]) -> None:
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    source = RIGHT.replace(old, new) if old else RIGHT
    exec(compile(source, "a.py", "exec", dont_inherit=True), vars(module))
    result = check_attempt(read(EXERCISE.fingerprints), LocalRecordingRunner(vars(module)), source)
    assert [each.id for each in result.diagnosis] == named
