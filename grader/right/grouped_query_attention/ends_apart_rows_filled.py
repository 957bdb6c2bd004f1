import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"n_embd {n_embd}, n_head {n_head}, n_kv_head {n_kv_head}: not divisible")
        self.n_embd, self.n_head, self.n_kv_head, self.block_size = n_embd, n_head, n_kv_head, block_size
        self.kv_dim = n_embd // n_head * n_kv_head
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * self.kv_dim, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T} > block_size {self.block_size}")
        q = self.q(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2)
        k, v = self.kv(x).split([self.kv_dim, self.kv_dim], -1)
        if self.n_kv_head == 1:
            k, v = k[:, None], v[:, None]
        elif self.n_kv_head == self.n_head:
            k, v = (t.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for t in (k, v))
        else:
            k, v = (
                t.unflatten(-1, (self.n_kv_head, 1, -1)).expand(-1, -1, -1, self.n_head // self.n_kv_head, -1)
                .flatten(2, 3).transpose(1, 2)
                for t in (k, v)
            )
        s = q @ k.mT / (C // self.n_head) ** 0.5
        for t in range(T):
            s[:, :, t, t + 1 :] = float("-inf")
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).contiguous().view(B, T, C))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    numbers = 2 * n_layer * n_kv_head * head_dim * T
    return numbers * bytes_per_number
