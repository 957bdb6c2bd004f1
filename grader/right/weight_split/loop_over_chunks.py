from math import sqrt

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    """Project once, chunk the channels, run each head on its own, glue together."""

    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, f"num_heads ({num_heads}) must divide d_out ({d_out})"
        self.num_heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        allowed = torch.tril(torch.ones(context_length, context_length)).bool()
        self.register_buffer("allowed", allowed, persistent=False)

    def one_head(self, q, k, v):
        T = q.shape[1]
        scores = torch.bmm(q, k.transpose(1, 2)) / sqrt(q.shape[-1])
        scores = torch.where(self.allowed[:T, :T], scores, torch.full_like(scores, -torch.inf))
        weights = torch.softmax(scores, dim=-1)
        weights = self.drop(weights)
        return torch.bmm(weights, v)

    def forward(self, x):
        assert x.shape[1] <= self.context_length, f"{x.shape[1]} > {self.context_length}"
        queries = self.W_query(x).chunk(self.num_heads, dim=-1)
        keys = self.W_key(x).chunk(self.num_heads, dim=-1)
        values = self.W_value(x).chunk(self.num_heads, dim=-1)
        heads = []
        for q, k, v in zip(queries, keys, values):
            heads.append(self.one_head(q, k, v))
        joined = torch.cat(heads, dim=-1)
        return self.out_proj(joined)
