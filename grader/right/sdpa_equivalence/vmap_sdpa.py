"""SDPA under vmap over heads; by hand a loop over queries that are given their past and nothing else."""

import torch
import torch.nn.functional as F
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd = {n_embd}, n_head = {n_head}")
        self.n_head, self.head_dim, self.block_size, self.flash = n_head, n_embd // n_head, block_size, flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.attn_drop, self.out_drop = nn.Dropout(dropout), nn.Dropout(dropout)

    def fast(self, q, k, v):
        p = self.attn_drop.p if self.training else 0.0

        def head(q, k, v):
            return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)

        return torch.vmap(head, in_dims=2, out_dims=2, randomness="different")(q, k, v)

    def slow(self, q, k, v):
        rows = []
        for t in range(q.shape[1]):
            scores = (q[:, t, None] * k[:, : t + 1]).sum(-1) / self.head_dim**0.5  # (B, t + 1, nh)
            weights = self.attn_drop(scores.softmax(1))
            rows.append((weights[..., None] * v[:, : t + 1]).sum(1))
        return torch.stack(rows, 1)

    def forward(self, x):
        T = x.size(1)
        if T > self.block_size:
            raise ValueError(f"T = {T} > {self.block_size}")
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_head, self.head_dim)).unbind(2)  # (B, T, nh, hd)
        y = (self.fast if self.flash else self.slow)(q, k, v)
        return self.out_drop(self.proj(y.flatten(2)))


def max_path_difference(module, x):
    flash, training = module.flash, module.training
    module.eval()
    with torch.inference_mode():
        module.flash = True
        a = module(x)
        module.flash = False
        b = module(x)
    module.flash = flash
    module.train(training)
    return (a - b).abs().max().item()
