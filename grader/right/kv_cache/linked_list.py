"""The cache is a linked list of chunks, each a pair and what came before; nothing is joined until it is needed."""

import math
from typing import NamedTuple

import torch
from torch import nn


class Chunk(NamedTuple):
    k: torch.Tensor
    v: torch.Tensor
    before: "Chunk | None"


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, block_size: int) -> None:
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_head} does not divide {n_embd}")
        self.n_head, self.block_size = n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        q, k, v = (t.reshape(*x.shape[:2], self.n_head, -1) for t in self.qkv(x).split(x.shape[-1], -1))
        cache = Chunk(k, v, cache)
        chunks, at = [], cache
        while at is not None:
            chunks.insert(0, at)
            at = at.before
        k, v = torch.cat([c.k for c in chunks], 1), torch.cat([c.v for c in chunks], 1)
        T, S = x.shape[1], k.shape[1]
        if S > self.block_size:
            raise ValueError(f"{S} tokens do not fit {self.block_size}")
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        hidden = torch.full((T, S), -math.inf, dtype=x.dtype, device=x.device).triu(S - T + 1)
        weights = torch.softmax(scores + hidden, dim=-1)
        return self.proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2)), cache
