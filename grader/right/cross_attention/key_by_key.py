"""One context token after the other, with a running maximum and a running sum."""

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
        B, Tq, _ = x.shape
        q = self.W_query(x).unflatten(-1, (self.num_heads, -1))  # (B, T_q, nh, hd)
        k = self.W_key(context).unflatten(-1, (self.num_heads, -1))
        v = self.W_value(context).unflatten(-1, (self.num_heads, -1))
        top = torch.full_like(q[..., :1], -1e30)
        total, y = torch.zeros_like(top), torch.zeros_like(q)
        for j in range(context.shape[1]):
            score = (q * k[:, j : j + 1]).sum(-1, keepdim=True) / q.shape[-1] ** 0.5  # (B, T_q, nh, 1)
            if keep is not None:
                score = score.masked_fill(~keep[:, j].view(B, 1, 1, 1), -1e30)
            higher = torch.maximum(top, score)
            old, new = (top - higher).exp(), (score - higher).exp()
            if keep is not None:
                new = new * keep[:, j].view(B, 1, 1, 1)
            total, y, top = total * old + new, y * old + new * v[:, j : j + 1], higher
        return self.out_proj((y / total).flatten(2))
