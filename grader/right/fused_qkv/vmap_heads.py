"""torch.vmap over heads (dropout with its own randomness in each)."""

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError("n_head does not divide n_embd")
        self.n_head, self.block_size, self.p = n_head, block_size, dropout
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        _B, T, _C = x.shape
        if T > self.block_size:
            raise ValueError("sequence too long")
        q, k, v = (t.unflatten(-1, (self.n_head, -1)) for t in self.qkv(x).chunk(3, dim=-1))
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(diagonal=1)

        def head(q, k, v):
            scores = (q @ k.mT) * q.shape[-1] ** -0.5
            weights = scores.masked_fill(future, -torch.inf).softmax(-1)
            return nn.functional.dropout(weights, self.p, self.training) @ v

        y = torch.vmap(head, in_dims=2, out_dims=2, randomness="different")(q, k, v)
        return nn.functional.dropout(self.proj(y.flatten(2)), self.p, self.training)


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose one of {list(table)}")
    n_embd, n_head = table[size]
    return CausalSelfAttention(n_embd, n_head, 1024)
