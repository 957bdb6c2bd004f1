"""Batch and heads in one axis, baddbmm with an additive mask that a buffer holds."""

import math

import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd}, {n_head}")
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.register_buffer("bias", torch.full((block_size, block_size), -1e30).triu(1))

    def flat(self, t):
        B, T, C = t.shape
        return t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2).reshape(B * self.n_head, T, C // self.n_head)

    def forward(self, x, cache=None):
        B, T, C = x.shape
        q, k, v = map(self.flat, torch.split(self.qkv(x), C, 2))
        if cache is not None:
            old_k, old_v = cache.unbind()
            k, v = torch.hstack([old_k, k]), torch.hstack([old_v, v])
        S = k.shape[1]
        if S > len(self.bias):
            raise ValueError(f"{S} tokens, {len(self.bias)} at most")
        bias = self.bias[S - T : S, :S].to(q.dtype).expand(len(q), T, S)
        scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=1 / math.sqrt(k.shape[2]))
        y = torch.bmm(scores.softmax(2), v).view(B, self.n_head, T, -1).transpose(1, 2).reshape(B, T, C)
        return self.proj(y), torch.stack((k, v))
