"""What an answer proves by itself is named on a student's machine, whatever mutants answer."""

from __future__ import annotations

import dataclasses
import sys
import types
from pathlib import Path

import pytest

from manyheads.box.worker.answers import Reply
from manyheads.checks.local import LocalRecordingRunner
from manyheads.course import load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.fingerprint import TWIN
from manyheads.diagnosis.observe import observed
from manyheads.diagnosis.proofs import proven_by_answer
from manyheads.diagnosis.recording_file import read
from manyheads.student.check_attempt import check_attempt
from tests.diagnosis.told_at_home import checked, exercise

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


@pytest.mark.parametrize(("old", "new", "named"), [
    pytest.param("", "", [], id="nothing"),
    pytest.param("window < 1 or", "window < 0 or", ["argument_unchecked"], id="one of two refusals"),
    pytest.param(", device=device", "", ["hard_coded_device"], id="a device"),
    pytest.param("q @ k.mT", "q @ k.mul_(2).div_(2).add_(1e-12).mT", ["input_mutated"], id="a changed argument"),
])  # fmt: skip
def test_an_answer_that_says_it_is_named(monkeypatch: pytest.MonkeyPatch, old: str, new: str, named: list[str]) -> None:
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    source = RIGHT.replace(old, new) if old else RIGHT
    exec(compile(source, "a.py", "exec", dont_inherit=True), vars(module))
    result = check_attempt(read(EXERCISE.fingerprints), LocalRecordingRunner(vars(module)), source)
    assert [each.id for each in result.diagnosis] == named


TILED = """import math
import torch

def online_softmax(scores, block):
    m, s = torch.full_like(scores[..., :1], -math.inf), torch.zeros_like(scores[..., :1])
    for part in scores.split(block, -1):
        m = torch.maximum(m, part.amax(-1, keepdim=True))
        s = s + (part - m).exp().sum(-1, keepdim=True)
    return (scores - m).exp() / s

def tiled_attention(q, k, v, block_q, block_k):
    ys, sums = [], []
    for i in range(0, q.shape[-2], block_q):
        rows = q[..., i : i + block_q, :] / math.sqrt(q.shape[-1])
        m, s, y = torch.full_like(rows[..., :1], -math.inf), torch.zeros_like(rows[..., :1]), 0.0
        for j in range(0, min(i + block_q, k.shape[-2]), block_k):
            keys, values = k[..., j : j + block_k, :], v[..., j : j + block_k, :]
            later = torch.arange(j, j + keys.shape[-2]) > torch.arange(i, i + rows.shape[-2])[:, None]
            scores = (rows @ keys.mT).masked_fill(later, -math.inf)
            higher = torch.maximum(m, scores.amax(-1, keepdim=True))
            p, factor = (scores - higher).exp(), (m - higher).exp()
            m, s, y = higher, s * factor + p.sum(-1, keepdim=True), y * factor + p @ values
        ys.append(y / s)
        sums.append((m + s.log()).squeeze(-1))
    return torch.cat(ys, -2), torch.cat(sums, -1)
"""


def test_what_an_answer_proves_stands_at_the_function_that_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It once stood at the first function that was wrong, whatever that one did."""
    exercise = next(each for each in COURSE.exercises if each.id == "tiled_attention")
    module = types.ModuleType("attempt")
    monkeypatch.setitem(sys.modules, "attempt", module)
    exec(compile(TILED, "a.py", "exec", dont_inherit=True), vars(module))
    result = check_attempt(read(exercise.fingerprints), LocalRecordingRunner(vars(module)), TILED)
    assert {each.id: each.function for each in result.diagnosis} == {
        "tile_no_rescale": "online_softmax",
        "hard_coded_device": "tiled_attention",
    }


def test_how_a_fused_kernel_works_inside_hides_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """For heads that lie apart in memory it takes another way, with a softmax, as it may on another processor."""
    exercise = next(each for each in COURSE.exercises if each.id == "sdpa_equivalence")
    faults = {"split": "interleaved", "merge": "axes_(2, 3, 1)"}
    mutant = next(each for each in load_bank(exercise).mutants if each.faults == faults)
    result = check_attempt(read(exercise.fingerprints), LocalRecordingRunner(mutant.namespace))
    assert [each.id for each in result.diagnosis] == [mutant.id]


def test_a_module_of_other_sizes_than_asked_for_is_named() -> None:
    """The recorded sizes of other mutants are not those of this one: it is unlike its twin, and that says enough."""
    exercise = next(each for each in COURSE.exercises if each.id == "fused_qkv")
    found = read(exercise.fingerprints)
    twins = [i for i in range(len(found.calls)) if TWIN in found.right(i).attributes]
    right = observed(found.calls[twins[0]], found.right(twins[0]), (), Reply())
    other = dataclasses.replace(right, found=dataclasses.replace(right.right, attributes={}))
    asked = [ask.calls for check in found.checks for ask in check.asks if ask.aspect == "attributes"]
    named = {proven_by_answer(found, i, other) for groups in asked for (i,) in groups if i in twins}
    assert named == {"gpt2_sizes"}
    same = dataclasses.replace(right, found=right.right)
    assert {proven_by_answer(found, i, same) for i in twins} == {""}


WIDE = """import torch
from torch import nn
from torch.nn import functional as F

class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"{n_embd}, {n_head}, {n_kv_head}")
        self.n_head, self.block_size = n_head, block_size
        self.q, self.kv, self.proj = (nn.Linear(n_embd, n * n_embd, bias=False) for n in (1, 2, 1))

    def forward(self, x):
        if x.shape[1] > self.block_size:
            raise ValueError(f"{x.shape[1]}, {self.block_size}")
        parts = (self.q(x), *self.kv(x).chunk(2, -1))
        q, k, v = (part.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).flatten(2))

def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
"""


def test_a_layer_of_another_width_is_named_whatever_its_own_weights_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    result = checked(exercise("grouped_query_attention"), WIDE, monkeypatch)
    assert [each.id for each in result.diagnosis] == ["layer_widths"]
