import torch
import torch.nn.functional as F
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_head % n_kv_head != 0:
            raise ValueError("n_head % n_kv_head")
        if n_embd % n_head != 0:
            raise ValueError("n_embd % n_head")
        self.head_dim = n_embd // n_head
        self.n_kv_head = n_kv_head
        self.n_head = n_head
        self.block_size = block_size
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, n_kv_head * self.head_dim * 2, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def _check(self, x):
        if x.shape[-2] > self.block_size:
            raise ValueError(f"context of {self.block_size} < {x.shape[-2]}")

    def forward(self, x):
        self._check(x)
        B, T, C = x.shape
        q = self.q(x).view(B, T, self.n_kv_head, -1, self.head_dim).permute(0, 2, 3, 1, 4)
        k, v = (t.view(B, T, self.n_kv_head, self.head_dim).transpose(1, 2).unsqueeze(2).expand_as(q)
                for t in self.kv(x).chunk(2, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.head_dim**-0.5)
        return self.proj(y.permute(0, 3, 1, 2, 4).reshape(B, T, C))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    mha = 2 * n_layer * n_head * head_dim * T * bytes_per_number
    return mha * n_kv_head // n_head
