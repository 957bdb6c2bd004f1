"""A float mask of zeros and −inf, made once and added."""

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
        Tk, nh = context.size(1), self.num_heads
        q = self.W_query(x).view(B, Tq, nh, -1).permute(0, 2, 1, 3)
        k = self.W_key(context).view(B, Tk, nh, -1).permute(0, 2, 3, 1)
        v = self.W_value(context).view(B, Tk, nh, -1).permute(0, 2, 1, 3)
        bias = torch.zeros(B, 1, 1, Tk, dtype=x.dtype, device=x.device)
        if keep is not None:
            bias = bias.masked_fill(keep.logical_not().view(B, 1, 1, Tk), float("-inf"))
        scores = torch.matmul(q, k) * q.shape[-1] ** -0.5 + bias
        out = torch.matmul(torch.softmax(scores, dim=-1), v)
        return self.out_proj(out.permute(0, 2, 1, 3).contiguous().view(B, Tq, -1))
