import warnings

import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def _attend(self, x):  # (T, d_in)
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        s = q @ k.T / k.shape[1] ** 0.5
        i = torch.arange(len(x), device=x.device)
        s = torch.where(i[:, None] >= i[None, :], s, torch.tensor(float("-inf"), dtype=s.dtype, device=s.device))
        return self.dropout(s.softmax(dim=1)) @ v

    def forward(self, x):
        if x.shape[1] > self.context_length:
            raise ValueError(f"{x.shape[1]} tokens do not fit into {self.context_length}")
        warnings.warn("one sequence at a time, this is slow", stacklevel=2)
        return torch.stack([self._attend(sequence) for sequence in x.unbind(0)])
