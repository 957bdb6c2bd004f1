"""Past and chunk are attended to apart, and joined by their log-sum-exp; keys are kept transposed."""

import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd // n_head * n_head != n_embd:
            raise ValueError(f"{n_embd=} {n_head=}")
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.n_head, self.block_size = n_head, block_size

    def forward(self, x, cache=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, -1).unbind(2)
        q, k, v = q.transpose(1, 2) / (C // self.n_head) ** 0.5, k.permute(0, 2, 3, 1), v.transpose(1, 2)
        past = cache[0].shape[-1] if cache is not None else 0
        if past + T > self.block_size:
            raise ValueError(f"{past + T} > {self.block_size}")
        late = torch.ones(T, T, device=x.device, dtype=torch.bool).triu(1)
        scores = (q @ k).masked_fill(late, float("-inf"))
        lse = scores.logsumexp(-1, keepdim=True)
        y = (scores - lse).exp() @ v
        if cache is not None:
            old = q @ cache[0]
            old_lse = old.logsumexp(-1, keepdim=True)
            share = torch.sigmoid(old_lse - lse)
            y = share * (old.softmax(-1) @ cache[1]) + (1 - share) * y
            k, v = torch.cat([cache[0], k], -1), torch.cat([cache[1], v], -2)
        return self.proj(y.transpose(1, 2).reshape(B, T, C)), (k, v)
