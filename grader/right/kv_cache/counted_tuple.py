"""The cache is (how many, keys, values), tokens in the second axis."""

import math

import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd={n_embd} is not divisible by n_head={n_head}")
        self.n_head, self.head_dim, self.block_size = n_head, n_embd // n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
    def forward(self, x, cache=None):
        B, T, C = x.shape
        past, k_old, v_old = (0, None, None) if cache is None else cache
        if past + T > self.block_size:
            raise ValueError(f"{past} + {T} > {self.block_size}")
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_head, self.head_dim)).unbind(2)
        if k_old is not None:
            k, v = torch.hstack((k_old, k)), torch.hstack((v_old, v))
        s = torch.einsum("bihd,bjhd->bhij", q, k) * self.head_dim**-0.5
        s = s + s.new_full((T, past + T), -math.inf).triu(past + 1)
        y = torch.einsum("bhij,bjhd->bihd", s.softmax(-1), v).flatten(2)
        return self.proj(y), (past + T, k, v)
