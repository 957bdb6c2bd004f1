import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import einsum, rearrange


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"d_out={d_out} cannot be shared evenly by {num_heads} heads")
        self.nh = num_heads
        self.max_T = context_length
        self.p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        T = x.size(1)
        if T > self.max_T:
            raise ValueError(f"{T} tokens, but the context is {self.max_T}")
        q = rearrange(self.W_query(x), "b t (h d) -> b h t d", h=self.nh)
        k = rearrange(self.W_key(x), "b t (h d) -> b h t d", h=self.nh)
        v = rearrange(self.W_value(x), "b t (h d) -> b h t d", h=self.nh)
        att = einsum(q, k, "b h i d, b h j d -> b h i j") * q.shape[-1] ** -0.5
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        att = att.masked_fill(future, float("-inf")).softmax(-1)
        att = F.dropout(att, self.p, self.training)
        y = einsum(att, v, "b h i j, b h j d -> b h i d")
        return self.out_proj(rearrange(y, "b h t d -> b t (h d)"))
