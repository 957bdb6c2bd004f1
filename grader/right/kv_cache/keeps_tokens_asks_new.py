"""The tokens are kept in place of keys and values; only the new ones ask."""

import math

import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd} channels in {n_head} heads")
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.n_head, self.block_size = n_head, block_size

    def heads(self, x, rows):
        return nn.functional.linear(x, rows).unflatten(-1, (self.n_head, -1)).transpose(1, 2)

    def forward(self, x, cache=None):
        known = x if cache is None else torch.cat([cache, x], dim=1)
        (B, T, C), n = x.shape, known.shape[1]
        if n > self.block_size:
            raise ValueError(f"{n} tokens do not fit {self.block_size}")
        w_q, w_k, w_v = self.qkv.weight.chunk(3)
        q, k, v = self.heads(x, w_q), self.heads(known, w_k), self.heads(known, w_v)
        ahead = torch.arange(n, device=x.device) > torch.arange(n - T, n, device=x.device)[:, None]
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(ahead, -math.inf).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, T, C)), known
