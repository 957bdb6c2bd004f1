"""What chance answers is named where all mutants that chance answers there, and that are wrong nowhere else, have one name."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from manyheads.checks.local import LocalRecordingRunner
from manyheads.course import Exercise, load_course
from manyheads.public.check import check_attempt
from manyheads.public.file import read
from manyheads.result import ExerciseResult

COURSE = load_course(Path(__file__).parents[2])
EXERCISE = next(each for each in COURSE.exercises if each.id == "weight_split")
RIGHT = """import math
import torch
import torch.nn.functional as F
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{d_out}, {num_heads}")
        self.heads, self.context, self.p = num_heads, context_length, dropout
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        T = x.shape[1]
        if T > self.context:
            raise ValueError(f"{T}, {self.context}")
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -math.inf).softmax(-1)
        y = F.dropout(weights, self.p, self.training) @ v
        return self.out_proj(y.transpose(1, 2).flatten(2))
"""


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        pytest.param("", "", [], id="nothing"),
        pytest.param(
            "self.p, self.training)", "self.p)", ["dropout_always_on"], id="a dropout that is not told of eval"
        ),
        pytest.param(
            "self.out_proj(y", "(1 + torch.rand(()) / 9) * self.out_proj(y", [], id="noise, which nobody listed"
        ),
    ],
)
def test_what_chance_answers_is_named(monkeypatch: pytest.MonkeyPatch, old: str, new: str, named: list[str]) -> None:
    source = RIGHT.replace(old, new) if old else RIGHT
    assert bool(old) is (source != RIGHT)
    assert [each.id for each in checked(EXERCISE, source, monkeypatch).diagnosis] == named


def test_where_most_is_wrong_chance_names_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = next(each for each in COURSE.exercises if each.id == "fused_qkv")
    right, gated = fused.solution.read_text(encoding="utf-8"), "self.attn_dropout(scores.softmax(dim=-1))"
    assert gated in right
    source = right.replace(
        gated, "nn.functional.dropout(scores.softmax(dim=-1), 0.1)"
    )  # layers made anew vary as widely
    result = checked(fused, source, monkeypatch)
    assert result.score < result.max_score
    assert (result.diagnosis, result.also) == ((), ())


def test_what_chance_answers_in_other_functions_too_may_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = next(each for each in COURSE.exercises if each.id == "sdpa_equivalence")
    right, gated = paths.solution.read_text(encoding="utf-8"), "self.dropout if self.training else 0.0"
    assert gated in right
    result = checked(paths, right.replace(gated, "self.dropout"), monkeypatch)
    assert [each.id for each in result.diagnosis] == ["dropout_always_on"]


def checked(exercise: Exercise, source: str, monkeypatch: pytest.MonkeyPatch) -> ExerciseResult:
    """What a student's machine says of this text."""
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    exec(compile(source, "a.py", "exec", dont_inherit=True), vars(module))
    return check_attempt(read(exercise.fingerprints), LocalRecordingRunner(vars(module)), source)
