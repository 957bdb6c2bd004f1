import numpy as np
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.hidden = torch.from_numpy(np.triu(np.ones((context_length, context_length)), 1)).bool()

    def forward(self, x):
        T = x.shape[1]
        if T > self.hidden.shape[0]:
            raise ValueError("more tokens than context")
        hidden = self.hidden[:T, :T].to(x.device)
        q, k, v = [layer(x) for layer in (self.W_query, self.W_key, self.W_value)]
        d = q.shape[2]
        q, k = q / d**0.25, k / d**0.25
        scores = torch.tensordot(q, k, dims=([2], [2])).diagonal(dim1=0, dim2=2).permute(2, 0, 1).contiguous()
        scores.masked_fill_(hidden, -float("inf"))
        return self.dropout(torch.nn.Softmax(dim=-1)(scores)) @ v
