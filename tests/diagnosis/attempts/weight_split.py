import math
import torch
import torch.nn.functional as F
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{d_out}, {num_heads}")
        self.heads, self.context, self.p = num_heads, context_length, dropout
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        T = x.shape[1]
        if T > self.context:
            raise ValueError(f"{T}, {self.context}")
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -math.inf).softmax(-1)
        y = F.dropout(weights, self.p, self.training) @ v
        return self.out_proj(y.transpose(1, 2).flatten(2))
