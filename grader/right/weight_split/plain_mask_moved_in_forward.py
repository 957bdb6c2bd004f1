import warnings

import numpy as np
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out // num_heads * num_heads != d_out:
            raise ValueError(f"{d_out}/{num_heads}")
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.hidden = torch.from_numpy(np.triu(np.ones((context_length, context_length)), 1)).bool()

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.hidden.shape[0]:
            raise ValueError("more tokens than context")
        warnings.warn("moving the mask", stacklevel=2)
        hidden = self.hidden[:T, :T].to(x.device)
        q, k, v = [
            f(x).view(B, T, self.num_heads, -1).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value)
        ]
        d = q.shape[-1]
        scores = (q / d**0.25) @ (k / d**0.25).mT
        scores.masked_fill_(hidden, -float("inf"))
        out = torch.zeros(B, T, self.num_heads, d, dtype=x.dtype, device=x.device)
        context = self.dropout(nn.Softmax(dim=-1)(scores)) @ v
        out = out + context.transpose(1, 2)
        return self.out_proj(out.reshape(B, T, -1))
