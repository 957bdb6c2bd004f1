import torch
from torch import nn
from torch.func import vmap


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{num_heads} heads do not fit {d_out} channels")
        self.context_length, self.num_heads = context_length, num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.context_length:
            raise ValueError(f"{T} > {self.context_length}")
        hide = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)

        def one_head(q, k, v):  # (B, T, hd)
            s = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(hide, float("-inf"))
            return self.dropout(s.softmax(-1)) @ v

        heads = [layer(x).view(B, T, self.num_heads, -1) for layer in (self.W_query, self.W_key, self.W_value)]
        out = vmap(one_head, in_dims=2, out_dims=2, randomness="different")(*heads)  # (B, T, nh, hd)
        return self.out_proj(out.reshape(B, T, -1))
