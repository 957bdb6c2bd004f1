import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.W_query, self.W_key, self.W_value = self.layers
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("hidden", torch.ones(context_length, context_length, dtype=torch.bool).triu(1))

    def forward(self, x):
        T = x.size(1)
        if T > self.hidden.size(0):
            raise ValueError(f"{T} tokens for a context of {self.hidden.size(0)}")
        q, k, v = (layer(x) for layer in self.layers)
        scores = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(self.hidden[:T, :T], float("-inf"))
        return self.dropout(scores.softmax(-1)) @ v
