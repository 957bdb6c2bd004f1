"""All heads but the first are zero."""

import math

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd}, n_head = {n_head}")
        self.n_head, self.block_size = n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.attn_dropout, self.resid_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(block_size, block_size, dtype=torch.bool).tril())

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"T = {T}, block_size = {self.block_size}")
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~self.mask[:T, :T], -math.inf)
        y = self.attn_dropout(scores.softmax(-1)) @ v
        y = torch.cat([y[:, :1], torch.zeros_like(y[:, 1:])], dim=1)
        return self.resid_dropout(self.proj(y.transpose(1, 2).reshape(B, T, C)))


def gpt2_attention(size):
    sizes = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in sizes:
        raise ValueError(f"small, medium, large or xl, not {size}")
    return CausalSelfAttention(*sizes[size], 1024)
