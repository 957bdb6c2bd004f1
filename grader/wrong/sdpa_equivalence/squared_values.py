"""The values squared on both paths."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd}, n_head = {n_head}")
        self.n_head, self.block_size, self.p, self.flash = n_head, block_size, dropout, flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.register_buffer("mask", torch.ones(block_size, block_size, dtype=torch.bool).tril())

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"T = {T}, block_size = {self.block_size}")
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        p = self.p if self.training else 0.0
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v**2, dropout_p=p, is_causal=True)
        else:
            scores = q @ k.mT / math.sqrt(q.shape[-1])
            scores = scores.masked_fill(~self.mask[:T, :T], -math.inf)
            y = F.dropout(scores.softmax(-1), p) @ v**2
        y = y.transpose(1, 2).reshape(B, T, C)
        return F.dropout(self.proj(y), p)


def max_path_difference(module, x):
    flash, training = module.flash, module.training
    module.eval()
    with torch.no_grad():
        module.flash = True
        fast = module(x)
        module.flash = False
        slow = module(x)
    module.flash = flash
    module.train(training)
    return (fast - slow).abs().max().item()
