"""Queries and keys of length 1."""

import math

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"n_embd = {n_embd}, n_head = {n_head}, n_kv_head = {n_kv_head}")
        self.n_head, self.n_kv_head, self.block_size = n_head, n_kv_head, block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * (n_embd // n_head), bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.register_buffer("mask", torch.ones(block_size, block_size, dtype=torch.bool).tril())

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"T = {T}, block_size = {self.block_size}")
        hd, group = C // self.n_head, self.n_head // self.n_kv_head
        q = self.q(x).view(B, T, self.n_head, hd).transpose(1, 2)
        k, v = (t.view(B, T, self.n_kv_head, hd).transpose(1, 2) for t in self.kv(x).chunk(2, -1))
        k, v = (t.repeat_interleave(group, dim=1) for t in (k, v))
        q, k = nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1)
        scores = q @ k.mT / math.sqrt(hd)
        scores = scores.masked_fill(~self.mask[:T, :T], -math.inf)
        y = scores.softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
