"""Softmax in float32 and back, movedim, a mask that is cached when first needed."""

import math

import torch
from torch import Tensor, nn


class CausalSelfAttention(nn.Module):
    mask_cache: Tensor | None

    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd {n_embd} must be divisible by n_head {n_head}")
        self.cfg = (n_embd, n_head, block_size)
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.drop1 = nn.Dropout(dropout)
        self.drop2 = nn.Dropout(dropout)
        self.register_buffer("mask_cache", None, persistent=False)

    def get_mask(self, T, device):
        if self.mask_cache is None or self.mask_cache.shape[0] < T or self.mask_cache.device != device:
            self.mask_cache = torch.ones(T, T, dtype=torch.bool, device=device).triu(1)
        return self.mask_cache[:T, :T]

    def forward(self, x):
        C, nh, block = self.cfg
        B, T, _ = x.shape
        if T > block:
            raise ValueError(f"got {T} tokens, at most {block}")
        q, k, v = [t.reshape(B, T, nh, -1).movedim(2, 1) for t in torch.split(self.qkv(x), C, dim=-1)]
        scores = torch.matmul(q, k.transpose(2, 3)).div(math.sqrt(C // nh))
        scores.masked_fill_(self.get_mask(T, x.device), float("-inf"))
        w = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        y = torch.matmul(self.drop1(w), v)
        return self.drop2(self.proj(torch.movedim(y, 1, 2).reshape(B, T, -1)))


class GPT2Attention(CausalSelfAttention):
    pass


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose one of {list(table)}")
    n_embd, n_head = table[size]
    return GPT2Attention(n_embd, n_head, 1024)
