"""Heads folded into the batch, keep repeated for each of them, baddbmm."""

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

    def fold(self, t):
        B, n, C = t.shape
        return t.view(B, n, self.num_heads, C // self.num_heads).transpose(1, 2).reshape(B * self.num_heads, n, -1)

    def forward(self, x, context, keep=None):
        B, Tq, _ = x.shape
        q, k, v = self.fold(self.W_query(x)), self.fold(self.W_key(context)), self.fold(self.W_value(context))
        bias = torch.zeros(B * self.num_heads, 1, k.shape[1], dtype=q.dtype, device=q.device)
        if keep is not None:
            bias = bias.masked_fill(~keep.repeat_interleave(self.num_heads, dim=0)[:, None], -1e9)
        scores = torch.baddbmm(bias.expand(-1, Tq, -1), q, k.transpose(1, 2), alpha=q.shape[-1] ** -0.5)
        y = torch.bmm(scores.softmax(-1), v)
        return self.out_proj(y.view(B, self.num_heads, Tq, -1).transpose(1, 2).reshape(B, Tq, -1))
