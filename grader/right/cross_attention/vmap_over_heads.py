"""One head written down, and mapped over all."""

import math

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out={d_out} is not divisible by num_heads={num_heads}")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.d_out = d_out
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
    def forward(self, x, context, keep=None):
        bias = x.new_zeros(len(x), 1, context.shape[1])
        if keep is not None:
            bias = bias.masked_fill(~keep[:, None], torch.finfo(x.dtype).min)

        def one(q, k, v):
            return torch.softmax(q @ k.mT / math.sqrt(self.head_dim) + bias, dim=-1) @ v

        cut = lambda t: t.unflatten(-1, (self.num_heads, -1))
        heads = torch.vmap(one, in_dims=2, out_dims=2)(cut(self.W_query(x)), cut(self.W_key(context)), cut(self.W_value(context)))
        return self.out_proj(heads.flatten(2))
