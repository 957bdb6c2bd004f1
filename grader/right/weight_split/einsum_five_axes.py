"""Never transposes: einsum names the axes where they are."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"d_out {d_out} % num_heads {num_heads} != 0")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.n, self.c, self.p = num_heads, context_length, dropout

    def forward(self, x):
        B, T, _ = x.shape
        if self.c < T:
            raise ValueError(f"T={T} > {self.c}")
        q = self.W_query(x).reshape(B, T, self.n, -1)
        k = self.W_key(x).reshape(B, T, self.n, -1)
        v = self.W_value(x).reshape(B, T, self.n, -1)
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        s = s + torch.full((T, T), -math.inf, dtype=s.dtype, device=s.device).triu(1)
        w = F.dropout(torch.softmax(s, 3), self.p, training=self.training)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", w, v).reshape(B, T, -1))
