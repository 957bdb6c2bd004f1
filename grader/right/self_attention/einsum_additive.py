import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.context_length, self.dropout = context_length, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        T = x.shape[1]
        if T > self.context_length:
            raise ValueError(f"T={T}, context_length={self.context_length}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        penalty = torch.full((T, T), float("-inf"), dtype=x.dtype, device=x.device).triu(1)
        scores = torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.size(-1)) + penalty
        w = F.softmax(scores, dim=2)
        w = F.dropout(w, self.dropout, training=self.training)
        return torch.einsum("bqk,bkd->bqd", w, v)
