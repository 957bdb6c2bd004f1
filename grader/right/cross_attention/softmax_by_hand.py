"""The softmax by hand: exponentials times keep, then shared out."""

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
        B, (Tq, Tk) = x.shape[0], (x.shape[1], context.shape[1])
        q = self.W_query(x).reshape(B, Tq, self.num_heads, -1)
        k = self.W_key(context).reshape(B, Tk, self.num_heads, -1)
        v = self.W_value(context).reshape(B, Tk, self.num_heads, -1)
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / q.shape[-1] ** 0.5
        real = torch.ones(B, Tk, dtype=torch.bool, device=x.device) if keep is None else keep
        real = real.reshape(B, 1, 1, Tk)
        top = torch.where(real, scores, -torch.inf).amax(-1, keepdim=True)
        e = torch.where(real, (scores - top).clamp(max=0).exp(), 0.0)
        y = torch.einsum("bhij,bjhd->bihd", e / e.sum(-1, keepdim=True), v)
        return self.out_proj(y.reshape(B, Tq, -1))
