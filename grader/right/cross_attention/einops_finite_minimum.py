"""einops, einsum with names, and the lowest number of the dtype."""

import torch
from einops import einsum, rearrange
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
        q = rearrange(self.W_query(x), "b i (h d) -> b h i d", h=self.num_heads)
        k, v = (rearrange(w(context), "b j (h d) -> b h j d", h=self.num_heads) for w in (self.W_key, self.W_value))
        scores = einsum(q, k, "b h i d, b h j d -> b h i j") / q.shape[-1] ** 0.5
        if keep is not None:
            scores = scores.masked_fill(~rearrange(keep, "b j -> b 1 1 j"), torch.finfo(scores.dtype).min)
        y = einsum(scores.softmax(-1), v, "b h i j, b h j d -> b h i d")
        return self.out_proj(rearrange(y, "b h i d -> b i (h d)"))
