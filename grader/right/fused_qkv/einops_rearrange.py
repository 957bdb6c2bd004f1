"""einops in and out, the mask made in forward."""

import torch
from einops import einsum, rearrange
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, block_size: int, dropout: float = 0.0):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd={n_embd}, n_head={n_head}")
        self.n_head, self.block_size = n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        if T > self.block_size:
            raise ValueError(f"T={T} is longer than block_size={self.block_size}")
        q, k, v = rearrange(self.qkv(x), "b t (three h d) -> three b h t d", three=3, h=self.n_head)
        scores = einsum(q, k, "b h i d, b h j d -> b h i j") * q.shape[-1] ** -0.5
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        scores = scores.masked_fill(future, torch.finfo(scores.dtype).min)
        y = einsum(self.drop(scores.softmax(-1)), v, "b h i j, b h j d -> b h i d")
        return self.drop(self.proj(rearrange(y, "b h t d -> b t (h d)")))


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose one of {list(table)}")
    n_embd, n_head = table[size]
    return CausalSelfAttention(n_embd, n_head, 1024)
