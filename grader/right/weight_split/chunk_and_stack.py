import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(d_out, num_heads)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.context_length = num_heads, context_length

    def forward(self, x):
        T = x.shape[1]
        if T > self.context_length:
            raise ValueError(T, self.context_length)
        layers = self.W_query, self.W_key, self.W_value
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
        q, k, v = F.linear(x, weight, bias).chunk(3, dim=-1)
        q = torch.stack(q.chunk(self.num_heads, dim=-1))  # (nh, B, T, hd)
        k = torch.stack(k.tensor_split(self.num_heads, dim=-1))
        v = torch.stack(v.split(v.shape[-1] // self.num_heads, dim=-1))
        i = torch.arange(T, device=x.device)
        scores = torch.where(i[:, None] >= i, q @ k.mT * q.shape[-1] ** -0.5, -torch.inf)
        out = self.dropout(scores.softmax(-1)) @ v
        return self.out_proj(torch.cat(out.unbind(0), dim=-1))
