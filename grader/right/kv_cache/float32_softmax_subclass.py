"""Inherited from a module without a cache; the softmax in float32 at least; the cache in another layout."""

import math

import torch
from torch import nn


class _Layers(nn.Module):
    def __init__(self, n_embd, n_head, block_size, **ignored):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"{n_embd=}, {n_head=}")
        self.config = dict(n_head=n_head, block_size=block_size)
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)


class CachedSelfAttention(_Layers):
    def forward(self, x, cache=None, verbose=False):
        (B, T, C), nh = x.shape, self.config["n_head"]
        new = self.qkv(x).view(B, T, 3, nh, C // nh)
        q, kv = new[:, :, 0], new[:, :, 1:]
        kv = kv if cache is None else torch.cat([cache, kv], dim=1)
        S = kv.shape[1]
        if S > self.config["block_size"]:
            raise ValueError(f"{S} tokens, but block_size is {self.config['block_size']}")
        k, v = kv.unbind(2)
        scores = torch.einsum("bihd,bjhd->bhij", q, k).div(math.sqrt(C // nh))
        causal = torch.ones(S, S, device=x.device).tril()[-T:]
        scores = scores.masked_fill(causal.eq(0), float("-inf"))
        weights = scores.to(torch.promote_types(scores.dtype, torch.float32)).softmax(-1).type_as(x)
        return [self.proj(torch.einsum("bhij,bjhd->bihd", weights, v).reshape(B, T, C)), kv]
