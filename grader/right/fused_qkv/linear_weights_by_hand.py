"""F.linear on slices of the weight; the softmax by logsumexp; own dropout."""

import torch
import torch.nn.functional as F
from torch import nn


def drop(t, p, training):
    if not training or p == 0:
        return t
    keep = torch.rand(t.shape, device=t.device) >= p
    return t * keep / (1 - p)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd=} {n_head=}")
        self.n_embd, self.n_head, self.block_size, self.dropout = n_embd, n_head, block_size, dropout
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        nn.init.normal_(self.qkv.weight, std=0.02)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T=} {self.block_size=}")
        wq, wk, wv = self.qkv.weight[:C], self.qkv.weight[C : 2 * C], self.qkv.weight[2 * C :]
        q, k, v = (F.linear(x, w).view(B, T, self.n_head, -1).transpose(1, 2) for w in (wq, wk, wv))
        scores = q @ k.transpose(-2, -1) / (C / self.n_head) ** 0.5
        log = torch.where(torch.ones(T, T, device=x.device).tril() > 0, scores, -torch.inf).logsumexp(-1, keepdim=True)
        weights = (scores - log).tril().exp().tril()
        y = (drop(weights, self.dropout, self.training) @ v).transpose(1, 2).reshape(B, T, C)
        return drop(self.proj(y), self.dropout, self.training)


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose one of {list(table)}")
    n_embd, n_head = table[size]
    return CausalSelfAttention(n_embd, n_head, 1024)
