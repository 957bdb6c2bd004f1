"""A dict of keys and values; the mask from a lower triangle with an offset."""

import math

import torch
import torch.nn as nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        assert n_embd % n_head == 0, f"{n_embd} % {n_head}"
        self.n_head, self.block_size = n_head, block_size
        self.qkv = nn.Linear(n_embd, n_embd * 3, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        B, T, C = x.size()
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (t.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for t in (q, k, v))
        if cache:
            k, v = torch.cat((cache["k"], k), -2), torch.cat((cache["v"], v), -2)
        S = k.size(-2)
        assert S <= self.block_size, f"{S} tokens, {self.block_size} at most"
        seen = torch.ones(T, S, dtype=torch.bool, device=x.device).tril(S - T)
        att = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(~seen, float("-inf"))
        y = att.softmax(-1).softmax(-1) @ v
        return self.proj(y.transpose(1, 2).flatten(2)), {"k": k, "v": v}
