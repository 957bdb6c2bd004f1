import typing as t

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    _seen: t.Optional[torch.Tensor]

    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        self._check_heads(d_out, num_heads)
        self.context_length = context_length
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_drop = nn.Dropout(dropout)
        self._seen = None

    @staticmethod
    def _check_heads(d_out, num_heads):
        if d_out % num_heads > 0:
            raise ValueError(f"cannot cut {d_out} channels into {num_heads} heads")

    def _mask(self, n, device):
        if self._seen is None or self._seen.device != device:
            at = torch.arange(self.context_length, device=device)
            self._seen = at[:, None] >= at[None, :]
        return self._seen[:n, :n]

    def _split(self, z):
        return z.unflatten(2, (self.num_heads, -1)).movedim(2, 1)

    def forward(self, x):
        n = x.shape[-2]
        if n > self.context_length:
            raise ValueError(f"{n} tokens do not fit into a context of {self.context_length}")
        q, k, v = self._split(self.W_query(x)), self._split(self.W_key(x)), self._split(self.W_value(x))
        logits = torch.einsum("bhqd,bhkd->bhqk", q, k).div(q.size(-1) ** 0.5)
        lowest = torch.finfo(logits.dtype).min
        logits = torch.where(self._mask(n, x.device), logits, lowest)
        probs = self.attn_drop(torch.softmax(logits, -1))
        out = torch.einsum("bhqk,bhkd->bqhd", probs, v)
        return self.out_proj(out.flatten(start_dim=2))
