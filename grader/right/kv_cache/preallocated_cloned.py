"""A buffer of block_size tokens, cloned before it is written; a plain int beside it."""

import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"{n_embd} {n_head}")
        self.n_head, self.hd, self.block_size = n_head, n_embd // n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.register_buffer("order", torch.arange(block_size), persistent=False)

    def forward(self, x, cache=None):
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_head, self.hd).permute(2, 0, 3, 1, 4)
        if cache is None:
            kept, n = x.new_zeros(2, B, self.n_head, self.block_size, self.hd), 0
        else:
            kept, n = cache[0].clone(), cache[1]
        if n + T > self.block_size:
            raise ValueError(f"{n} + {T} > {self.block_size}")
        kept[:, :, :, n : n + T] = qkv[1:]
        scores = qkv[0] @ kept[0].transpose(2, 3) * self.hd**-0.5
        scores = scores.masked_fill(self.order > self.order[n : n + T, None], -1e9)
        y = torch.softmax(scores, -1) @ kept[1]
        return self.proj(y.transpose(1, 2).reshape(B, T, C)), (kept, n + T)
