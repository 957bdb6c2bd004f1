"""One head as a function, mapped over the group, the sets and the batch."""

import torch
from torch import nn
from torch.func import vmap


def head(q, k, v, hidden):
    scores = q @ k.T / q.shape[-1] ** 0.5
    return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v


group = vmap(head, in_dims=(0, None, None, None))
sets = vmap(group, in_dims=(0, 0, 0, None))
batch = vmap(sets, in_dims=(0, 0, 0, None))


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"{n_embd}, {n_head}, {n_kv_head}")
        self.nkv, self.group, self.hd, self.block_size = n_kv_head, n_head // n_kv_head, n_embd // n_head, block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.hd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T}, {self.block_size}")
        q = self.q(x).view(B, T, self.nkv, self.group, self.hd).permute(0, 2, 3, 1, 4)
        k, v = self.kv(x).view(B, T, 2, self.nkv, self.hd).permute(2, 0, 3, 1, 4)
        y = batch(q, k, v, torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1))  # (B, nkv, group, T, hd)
        return self.proj(y.permute(0, 3, 1, 2, 4).reshape(B, T, C))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
