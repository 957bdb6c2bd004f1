"""Right attempts at `weight_split` and `attention_scores` as others write them, and what a student's machine says of a text."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from manyheads.checks.local import LocalRecordingRunner
from manyheads.course import Exercise, load_course
from manyheads.diagnosis.recording_file import read
from manyheads.result import ExerciseResult
from manyheads.student.check_attempt import check_attempt

COURSE = load_course(Path(__file__).parents[2])
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
SCORES = """import math

def simplified_attention(x):
    return (x @ x.mT).softmax(-1) @ x

def attention_scores(q, k):
    return q @ k.mT / math.sqrt(q.shape[-1])

def attention_weights(scores):
    return scores.softmax(-1)

def attend(q, k, v):
    return attention_weights(attention_scores(q, k)) @ v
"""


def exercise(id_: str) -> Exercise:
    """The course's exercise with this id."""
    return next(each for each in COURSE.exercises if each.id == id_)


def checked(exercise: Exercise, source: str, monkeypatch: pytest.MonkeyPatch) -> ExerciseResult:
    """What a student's machine says of this text."""
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    exec(compile(source, "a.py", "exec", dont_inherit=True), vars(module))
    return check_attempt(read(exercise.fingerprints), LocalRecordingRunner(vars(module)), source)
