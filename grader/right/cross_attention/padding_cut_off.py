"""One sequence after the other, its padding cut off before anything is computed."""

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"d_out = {d_out} is no multiple of num_heads = {num_heads}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def one(self, x, context):
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(0, 1) for t in (
            self.W_query(x), self.W_key(context), self.W_value(context)
        ))  # (nh, T, hd)
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        return self.out_proj((weights @ v).transpose(0, 1).flatten(1))

    def forward(self, x, context, keep=None):
        if keep is None:
            return torch.stack([self.one(*pair) for pair in zip(x, context)])
        return torch.stack([self.one(a, c[real]) for a, c, real in zip(x, context, keep)])
