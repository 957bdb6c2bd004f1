import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{d_out} channels do not divide into {num_heads} heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.register_buffer("hidden", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        B, T, _ = x.shape
        if T > len(self.hidden):
            raise ValueError(f"{T} tokens do not fit a context of {len(self.hidden)}")
        hidden = self.hidden[:T, :T]
        layers = self.W_query, self.W_key, self.W_value
        q, k, v = (f(x).view(B, T, self.num_heads, -1).transpose(1, 2) for f in layers)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = q @ q.mT / q.shape[-1] ** 0.5
        weights = self.dropout(scores.masked_fill(hidden, float("-inf")).softmax(-1))
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))
