import math

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0, f"{d_out} is not a multiple of {num_heads}"
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, keep=None):
        B, T_q, _ = x.shape
        T_k = context.shape[1]
        q = self.W_query(x).view(B, T_q, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.W_key(context).view(B, T_k, self.num_heads, self.head_dim).transpose(1, 2)
        v = self.W_value(context).view(B, T_k, self.num_heads, self.head_dim).transpose(1, 2)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, :, None], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(B, T_q, -1)
        return self.out_proj(y)
