# softmax first, then hide, then make the rows sum to 1 again: the same thing
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("simple_mask", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x):
        T = x.size(1)
        if T > self.simple_mask.size(0):
            raise ValueError(f"{T} tokens > {self.simple_mask.size(0)}")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.softmax(queries @ keys.movedim(-1, -2) / keys.size(-1) ** 0.5, dim=-1)
        weights = weights * self.simple_mask[:T, :T]
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return self.dropout(weights) @ values
