"""SDPA, which knows groups itself."""

import torch.nn.functional as F
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"{n_embd} channels, {n_head} heads, {n_kv_head} of keys and values")
        self.nh, self.nkv, self.hd, self.longest = n_head, n_kv_head, n_embd // n_head, block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.hd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.longest:
            raise ValueError(f"{T} > {self.longest}")
        q = self.q(x).view(B, T, self.nh, self.hd).transpose(1, 2)
        k, v = self.kv(x).view(B, T, 2, self.nkv, self.hd).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
