"""Where the reference refuses, an error of PyTorch's counts as a refusal: of the attempt, and of the mutants that it is held against."""

from __future__ import annotations

import pytest

from tests.diagnosis.told_at_home import checked, exercise

CACHED = """import math
import torch
from torch import nn

class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd}, {n_head}")
        self.n_head, self.block_size = n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        k, v = (each.view(KEPT) for each in (k, v))
        if cache is not None:
            k, v = (torch.cat([cache[name], new], dim=AXIS) for name, new in (("k", k), ("v", v)))
        cache, S = {"k": k, "v": v}, k.size(1)
        if S > self.block_size:
            raise ValueError(f"{S}, {self.block_size}")
        q, k, v = (each.reshape(B, -1, self.n_head, C // self.n_head).transpose(1, 2) for each in (q, k, v))
        later = torch.ones(T, S, dtype=torch.bool, device=x.device).triu(S - T + 1)
        weights = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(later, -math.inf).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, T, C)), cache
"""
HEADS, WHOLE = "B, T, self.n_head, -1", "B, T, C"


@pytest.mark.parametrize(("kept", "axis", "named"), [
    pytest.param(HEADS, 1, [], id="the tokens', heads apart"),
    pytest.param(WHOLE, 1, [], id="the tokens'"),
    pytest.param(HEADS, 2, ["cache_wrong_axis"], id="the heads'"),
    pytest.param(HEADS, 0, ["cache_wrong_axis"], id="the batch's, heads apart"),
    pytest.param(WHOLE, -1, ["cache_wrong_axis"], id="the channels'"),
    pytest.param(WHOLE, 0, ["cache_wrong_axis"], id="the batch's"),
])  # fmt: skip
def test_a_cache_joined_along_another_axis_is_named(
    monkeypatch: pytest.MonkeyPatch, kept: str, axis: int, named: list[str]
) -> None:
    result = checked(exercise("kv_cache"), CACHED.replace("KEPT", kept).replace("AXIS", str(axis)), monkeypatch)
    assert [each.id for each in result.diagnosis] == named
    assert result.is_done is not bool(named)
