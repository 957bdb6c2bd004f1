import math

import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        assert n_embd % n_head == 0, f"{n_embd} is not a multiple of {n_head}"
        self.n_head, self.head_dim, self.block_size = n_head, n_embd // n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, self.head_dim).permute(2, 0, 3, 1, 4)
        if cache is None:
            cache = []
        cache.append((k, v))
        k = torch.cat([k for k, _ in cache], dim=2)
        v = torch.cat([v for _, v in cache], dim=2)
        total = k.shape[2]
        assert total <= self.block_size, f"{total} tokens are more than {self.block_size}"
        mask = torch.ones(total, total, dtype=torch.bool, device=x.device).tril()[total - T :]
        scores = (q @ k.mT / math.sqrt(self.head_dim)).masked_fill(~mask, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C)
        return self.proj(y), cache
