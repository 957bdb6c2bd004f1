"""Functional products with slices of kv's rows, repeat_interleave over the channels' heads, baddbmm."""

import torch
import torch.nn.functional as F
from torch import nn


class GroupedQueryAttention(nn.Module):
    """Grouped-query attention."""

    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        for whole, part in ((n_embd, n_head), (n_head, n_kv_head)):
            if whole % part:
                raise ValueError(f"{part} does not divide {whole}")
        self.config = (n_head, n_kv_head, n_embd // n_head, block_size)
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * (n_embd // n_head), bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def heads(self, x, rows, n):
        B, T, _ = x.shape
        t = F.linear(x, rows).view(B, T, n, -1).repeat_interleave(self.config[0] // n, dim=2)
        return t.transpose(1, 2).flatten(0, 1)  # (B · nh, T, hd)

    def forward(self, x):
        B, T, C = x.shape
        n_head, n_kv, hd, block_size = self.config
        if T > block_size:
            raise ValueError(f"{T} of {block_size}")
        wk, wv = self.kv.weight[: n_kv * hd], self.kv.weight[n_kv * hd :]
        q, k, v = self.heads(x, self.q.weight, n_head), self.heads(x, wk, n_kv), self.heads(x, wv, n_kv)
        blocked = torch.full((T, T), -torch.inf, dtype=x.dtype, device=x.device).triu(1)
        scores = torch.baddbmm(blocked.expand(B * n_head, T, T), q, k.mT, alpha=hd**-0.5)
        y = scores.log_softmax(-1).exp().bmm(v)
        return self.proj(y.unflatten(0, (B, n_head)).transpose(1, 2).flatten(2))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
