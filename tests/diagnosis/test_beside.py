"""Two mistakes of which one explains the numbers, and the other shows itself: both are named on a student's machine."""

from __future__ import annotations

import pytest

from tests.diagnosis.told_at_home import SCORES, checked, exercise

MASK = """import torch

def causal_mask(T, device=None):
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()

def mask_scores(scores, mask):
    return scores.masked_fill(~mask, -torch.inf)

def causal_weights(scores):
    return mask_scores(scores, torch.ones_like(scores).tril().bool()).softmax(-1)
"""
PATHS = """import torch
import torch.nn.functional as F
from torch import nn

class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd}, {n_head}")
        self.qkv, self.proj = nn.Linear(n_embd, 3 * n_embd, bias=False), nn.Linear(n_embd, n_embd, bias=False)
        self.n_head, self.block_size, self.dropout, self.flash = n_head, block_size, dropout, flash

    def forward(self, x):
        T, p = x.shape[1], self.dropout if self.training else 0.0
        if T > self.block_size:
            raise ValueError(f"{T}, {self.block_size}")
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_head, -1)).permute(2, 0, 3, 1, 4)
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        else:
            future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
            scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(future, -torch.inf)
            y = F.dropout(scores.softmax(-1), p) @ v
        return F.dropout(self.proj(y.transpose(1, 2).flatten(2)), self.dropout, self.training)

@torch.no_grad()
def max_path_difference(module, x):
    flash, training = module.flash, module.training
    module.eval().flash = True
    y = module(x)
    module.flash = False
    y = y - module(x)
    module.train(training).flash = flash
    return y.abs().max().item()
"""
HEADS = """import torch

def split_heads(x, n_head):
    hd = x.shape[-1] // n_head
    return torch.stack(x.split(hd, dim=-1)[:n_head], dim=1)

def merge_heads(y):
    return y.transpose(1, 2).flatten(2)
"""
TEXTS = {"reshape_dance": HEADS, "attention_scores": SCORES, "causal_mask": MASK, "sdpa_equivalence": PATHS}


@pytest.mark.parametrize(("exercise_id", "changes", "named"), [
    pytest.param("attention_scores", {}, [], id="nothing"),
    pytest.param("attention_scores",
        {"attention(x):\n    return (x @ x.mT).softmax(-1) @ x": "attention(t):\n    return (t @ t.mT).softmax(-2) @ t"},
        ["interface", "softmax_query_axis"], id="an argument of another name, and an axis"),
    pytest.param("causal_mask", {"device).tril()": "device).tril()[None, None]"}, ["interface"],
        id="more axes are no size that is written in"),
    pytest.param("causal_mask", {"device).tril()": "device).tril().float()[None]"}, ["interface", "mask_not_bool"],
        id="an axis more, and numbers"),
    pytest.param("sdpa_equivalence",
        {"3 * n_embd, bias=False)": "3 * n_embd)", "self.qkv(x).unflatten": "(2 * self.qkv(x)).unflatten"},
        ["proj_bias"], id="a bias, and numbers of nobody's"),
    pytest.param("sdpa_equivalence",
        {"3 * n_embd, bias=False)": "3 * n_embd)", ".permute(2, 0, 3, 1, 4)": ".permute(2, 0, 3, 1, 4)[[1, 0, 2]]"},
        ["qkv_order", "proj_bias"], id="a bias, and queries taken for keys"),
    pytest.param("reshape_dance", {"y.transpose(1, 2).flatten(2)": "y.reshape(len(y), y.shape[2], -1)"},
        ["merge_no_transpose", "divisibility_unchecked"],
        id="heads that stay where they are, and an odd width that is cut in one call and fails in another"),
    pytest.param("sdpa_equivalence", {}, [], id="nothing on two paths"),
    pytest.param("sdpa_equivalence", {", is_causal=True": "", "module.train(training).flash": "module.flash"},
        ["mask_missing", "path_difference"], id="no mask on one path, and a module that is left in eval mode"),
])  # fmt: skip
def test_both_are_named(
    monkeypatch: pytest.MonkeyPatch, exercise_id: str, changes: dict[str, str], named: list[str]
) -> None:
    source = TEXTS[exercise_id]
    for old, new in changes.items():
        assert old in source
        source = source.replace(old, new)
    assert [each.id for each in checked(exercise(exercise_id), source, monkeypatch).diagnosis] == named


LISTED = """import torch
from torch import nn

class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.layers = [nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)]
        self.context_length, self.dropout = context_length, nn.Dropout(dropout)

    def forward(self, x):
        T = x.shape[1]
        if T > self.context_length:
            raise ValueError(f"{T}, {self.context_length}")
        q, k, v = (layer(x) for layer in self.layers)
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(future, -torch.inf)
        return self.dropout(scores.softmax(-1)) @ v
"""


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param({}, ["params_not_registered"], id="in a list"),
        pytest.param({"= [nn.Linear": "= nn.ModuleList([nn.Linear", "range(3)]": "range(3)])"}, ["params_extra"], id="of another name"),
    ],
)  # fmt: skip
def test_layers_whose_weights_are_their_own(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], named: list[str]
) -> None:
    source = LISTED
    for old, new in changes.items():
        source = source.replace(old, new)
    assert [each.id for each in checked(exercise("self_attention"), source, monkeypatch).diagnosis] == named
