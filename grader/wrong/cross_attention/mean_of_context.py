"""Half of the answer is the plain mean of the values."""

import math

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

    def forward(self, x, context, keep=None):
        B, T_q, _ = x.shape
        q, k, v = (
            t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for t in (self.W_query(x), self.W_key(context), self.W_value(context))
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, None, :], -math.inf)
        y = torch.softmax(scores, dim=-1) @ v
        return self.out_proj((0.5 * y + 0.5 * v.mean(2, keepdim=True)).transpose(1, 2).reshape(B, T_q, -1))
