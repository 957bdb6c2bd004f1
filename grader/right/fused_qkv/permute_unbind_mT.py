"""One view to five axes, permute, unbind; .mT and torch.where."""

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError("n_embd must be a multiple of n_head")
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.drop_w, self.drop_y = nn.Dropout(dropout), nn.Dropout(dropout)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size, dtype=torch.bool)))

    def forward(self, x):
        B, T, C = x.shape
        assert T <= self.tril.shape[0], "too long"
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, C // self.n_head).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.mT / (C // self.n_head) ** 0.5
        scores = torch.where(self.tril[:T, :T], scores, float("-inf"))
        y = self.drop_w(scores.softmax(-1)) @ v
        return self.drop_y(self.proj(y.permute(0, 2, 1, 3).flatten(2)))


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose one of {list(table)}")
    n_embd, n_head = table[size]
    return CausalSelfAttention(n_embd, n_head, 1024)
