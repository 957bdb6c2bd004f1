import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    # softmax, hide, renormalise
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.heads = num_heads
        self.register_buffer("mask_simple", torch.tril(torch.ones(context_length, context_length)))

    def forward(self, x):
        B, T, _ = x.shape
        assert T <= len(self.mask_simple)
        q = self.W_query(x).reshape((B, T, self.heads, -1)).transpose(-3, -2)
        k = self.W_key(x).reshape((B, T, self.heads, -1)).transpose(-3, -2)
        v = self.W_value(x).reshape((B, T, self.heads, -1)).transpose(-3, -2)
        w = torch.softmax(q @ k.transpose(-1, -2) / k.size(-1) ** 0.5, dim=-1) * self.mask_simple[:T, :T]
        w = self.dropout(w / w.sum(dim=-1, keepdim=True))
        return self.out_proj((w @ v).transpose(-3, -2).flatten(start_dim=2))
