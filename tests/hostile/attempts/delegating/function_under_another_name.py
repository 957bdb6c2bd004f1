"""Gives the fused function another name, and keeps it from the watch."""
import math

import torch
import torch.nn.functional as F
from torch import nn
mix = torch._C._nn.scaled_dot_product_attention


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd {n_embd} is not divisible by n_head {n_head}")
        self.n_head, self.block_size, self.p = n_head, block_size, dropout
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.resid = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"T = {T} is beyond block_size = {self.block_size}")
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in self.qkv(x).split(C, dim=2))
        with torch._C.DisableTorchFunction():
            y = mix(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=True)
        return self.resid(self.proj(y.transpose(1, 2).reshape(B, T, C)))


def gpt2_attention(size):
    sizes = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in sizes:
        raise ValueError(f"{size} is none of {', '.join(sizes)}")
    return CausalSelfAttention(*sizes[size], 1024)
