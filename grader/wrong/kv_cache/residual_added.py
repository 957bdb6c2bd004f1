"""SDPA with a boolean mask of its own."""

import torch
import torch.nn.functional as F
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd={n_embd} n_head={n_head}")
        self.nh, self.block_size = n_head, block_size
        self.qkv, self.proj = nn.Linear(n_embd, 3 * n_embd, bias=False), nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cache=None):
        q, k, v = (t.unflatten(2, (self.nh, -1)).movedim(2, 1) for t in self.qkv(x).tensor_split(3, dim=2))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        T, S = q.shape[2], k.shape[2]
        if S > self.block_size:
            raise ValueError(f"{S} tokens in all, {self.block_size} allowed")
        where = torch.arange(S, device=x.device)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=where[S - T :, None] >= where)
        return x + self.proj(y.movedim(1, 2).flatten(2)), torch.stack([k, v])
