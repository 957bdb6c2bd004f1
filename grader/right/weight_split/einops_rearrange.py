import torch
from einops import einsum, rearrange
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False, bias=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("heads do not divide d_out")
        self.h = num_heads
        self.scale = (d_out // num_heads) ** -0.5
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=bias)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(1, 1, context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        n = x.shape[1]
        if n > self.mask.shape[-1]:
            raise ValueError(f"{n} tokens are too many")
        q, k, v = (rearrange(f(x), "b n (h d) -> b h n d", h=self.h) for f in (self.W_query, self.W_key, self.W_value))
        sim = einsum(q * self.scale, k, "b h i d, b h j d -> b h i j")
        sim = sim.masked_fill(self.mask[..., :n, :n] == 0, -torch.finfo(sim.dtype).max)
        out = einsum(self.drop(sim.softmax(dim=-1)), v, "b h i j, b h j d -> b h i d")
        return self.out_proj(rearrange(out, "b h n d -> b n (h d)"))
