import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{d_out} cannot be divided by {num_heads}")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.dropout = nn.Dropout(dropout)
        self.num_heads, self.context_length, self.head_dim = num_heads, context_length, d_out // num_heads

    def _to_batch(self, t):
        B, T, _ = t.shape
        t = t.reshape(B, T, self.num_heads, self.head_dim)
        return t.permute(0, 2, 1, 3).reshape(B * self.num_heads, T, self.head_dim)

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.context_length:
            raise ValueError(f"{T} > {self.context_length}")
        q, k, v = (self._to_batch(layer(x)) for layer in (self.W_query, self.W_key, self.W_value))
        bias = torch.zeros(1, T, T, dtype=q.dtype, device=q.device)
        bias = bias.masked_fill(torch.ones(T, T, device=q.device, dtype=torch.bool).triu(1), -1e9)
        scores = torch.baddbmm(bias.expand(len(q), T, T), q, k.mT, alpha=self.head_dim**-0.5)
        out = torch.bmm(self.dropout(scores.softmax(-1)), v)
        out = out.view(B, self.num_heads, T, self.head_dim).permute(0, 2, 1, 3)
        return self.out_proj(out.reshape(B, T, self.num_heads * self.head_dim))
