"""No mask at all: every query is given its past and nothing else."""

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    """Causal by construction."""

    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd = {n_embd}, n_head = {n_head}")
        self.n_head, self.head_dim, self.block_size = n_head, n_embd // n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.attn_drop, self.out_drop = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x):
        T = x.size(1)
        if T > self.block_size:
            raise ValueError(f"T = {T} > {self.block_size}")
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_head, self.head_dim)).unbind(2)  # (B, T, nh, hd)
        rows = []
        for t in range(T):
            scores = (q[:, t, None] * k[:, : t + 1]).sum(-1) / self.head_dim**0.5  # (B, t + 1, nh)
            weights = self.attn_drop(scores.softmax(1))
            rows.append((weights[..., None] * v[:, : t + 1]).sum(1))
        return self.out_drop(self.proj(torch.stack(rows, 1).flatten(2)))


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose one of {list(table)}")
    n_embd, n_head = table[size]
    return CausalSelfAttention(n_embd, n_head, 1024)
