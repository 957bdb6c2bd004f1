"""One product with the three weights stacked, then chunk."""

import torch
import torch.nn.functional as F
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length
        self.mask = None

    def forward(self, x):
        T = x.shape[1]
        if T > self.context_length:
            raise ValueError(T, self.context_length)
        layers = self.W_query, self.W_key, self.W_value
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
        q, k, v = F.linear(x, weight, bias).chunk(3, dim=-1)
        if self.mask is None or self.mask.device != x.device:
            self.mask = torch.ones(self.context_length, self.context_length, device=x.device).tril().log()
        scores = torch.matmul(q, k.transpose(-1, -2)) / q.shape[-1] ** 0.5
        weights = F.softmax(scores + self.mask[:T, :T].to(scores.dtype), dim=-1)
        return torch.matmul(self.dropout(weights), v)
