"""Einops, and a frozen dataclass that knows its length."""

from dataclasses import dataclass

import torch
from einops import einsum, rearrange
from torch import Tensor, nn


@dataclass(frozen=True)
class Cache:
    k: Tensor
    v: Tensor

    def __len__(self) -> int:
        return self.k.shape[-2]

    def grown(self, k: Tensor, v: Tensor) -> "Cache":
        return Cache(torch.cat((self.k, k), -2), torch.cat((self.v, v), -2))


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, block_size: int):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_head = {n_head} does not divide n_embd = {n_embd}")
        self.n_head, self.block_size = n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        q, k, v = rearrange(self.qkv(x), "b t (three h d) -> three b h t d", three=3, h=self.n_head)
        cache = Cache(k, v) if cache is None else cache.grown(k, v)
        if len(cache) > self.block_size:
            raise ValueError(f"{len(cache)} tokens; block_size = {self.block_size}")
        scores = einsum(q, cache.k, "b h i d, b h j d -> b h i j") * q.shape[-1] ** -0.5
        offset = len(cache) - x.shape[1]
        i, j = (torch.arange(n, device=x.device) for n in scores.shape[-2:])
        scores = scores.where(j <= i[:, None] + offset, torch.finfo(scores.dtype).min)
        y = einsum(scores.softmax(-1), cache.v, "b h i j, b h j d -> b h i d")
        return self.proj(rearrange(y, "b h t d -> b t (h d)")), cache
