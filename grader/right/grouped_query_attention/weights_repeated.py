"""The rows of kv are repeated, before the projection; then it is multi-head attention."""

import torch
import torch.nn.functional as F
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"{n_embd} channels, {n_head} heads, {n_kv_head} sets")
        self.n_head, self.n_kv_head, self.block_size = n_head, n_kv_head, block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * (n_embd // n_head), bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T} > {self.block_size}")
        nh, sets = self.n_head, self.n_kv_head
        rows = self.kv.weight.view(2, sets, C // nh, C).repeat_interleave(nh // sets, dim=1)  # (2, nh, hd, C)
        wk, wv = rows.reshape(2, C, C)
        q, k, v = (t.view(B, T, nh, C // nh).transpose(1, 2) for t in (self.q(x), F.linear(x, wk), F.linear(x, wv)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
