"""baddbmm: the mask is what the product is added to."""

import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout=0.0, qkv_bias=False):
        super().__init__()
        make = lambda: nn.Linear(in_features=d_in, out_features=d_out, bias=qkv_bias)  # noqa: E731
        self.W_query = make()
        self.W_key = make()
        self.W_value = make()
        self.do = nn.Dropout(dropout)
        self.context_length = context_length
        self.d = d_out

    def forward(self, x):
        B, T, _ = x.size()
        if T > self.context_length:
            raise ValueError(f"got {T} tokens, at most {self.context_length} fit")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        mask = torch.zeros(B, T, T, dtype=q.dtype, device=q.device)
        mask.masked_fill_(torch.ones(T, T, device=q.device).triu(1).bool(), -1e9)
        s = torch.baddbmm(mask, q, k.permute(0, 2, 1), alpha=1 / self.d**0.5)
        return torch.bmm(self.do(torch.softmax(s, -1)), v)
