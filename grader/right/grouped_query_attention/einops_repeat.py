"""einops: rearrange, repeat and einsum with names."""

import torch
from einops import einsum, rearrange, repeat
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"n_embd={n_embd}, n_head={n_head}, n_kv_head={n_kv_head}")
        self.h, self.s, self.block = n_head, n_kv_head, block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * (n_embd // n_head), bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        T = x.shape[1]
        if T > self.block:
            raise ValueError(f"T={T}, block_size={self.block}")
        q = rearrange(self.q(x), "b t (h d) -> b h t d", h=self.h)
        k, v = rearrange(self.kv(x), "b t (two s d) -> two b s t d", two=2, s=self.s)
        k, v = (repeat(t, "b s t d -> b (s g) t d", g=self.h // self.s) for t in (k, v))
        scores = einsum(q, k, "b h i d, b h j d -> b h i j") / q.shape[-1] ** 0.5
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(future, torch.finfo(scores.dtype).min).softmax(-1)
        return self.proj(rearrange(einsum(weights, v, "b h i j, b h j d -> b h i d"), "b h t d -> b t (h d)"))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
