import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("hidden", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        T = x.shape[1]
        if T > len(self.hidden):
            raise ValueError(f"{T} tokens do not fit a context of {len(self.hidden)}")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        hidden = self.hidden[:T, :T]
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, float("-inf"))
        return (self.dropout(scores.softmax(-1)) @ v).roll(1, dims=1)
