import torch
from torch import nn
from torch.func import vmap


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("tril", torch.tril(torch.ones(context_length, context_length)).view(1, context_length, -1))

    def forward(self, x):
        T = x.shape[1]
        if T > self.context_length:
            raise ValueError(f"{T} > {self.context_length}")
        hide = self.tril[0, :T, :T] == 0

        def single(q, k, v):
            w = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(hide, float("-inf")).softmax(-1)
            return self.dropout(w) @ v

        return vmap(single, randomness="different")(self.W_query(x), self.W_key(x), self.W_value(x))
