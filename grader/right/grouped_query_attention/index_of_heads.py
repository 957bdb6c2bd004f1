"""An index tensor says which set each query head reads."""

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"{n_embd} / {n_head} / {n_kv_head}")
        self.n_head, self.n_kv_head, self.hd = n_head, n_kv_head, n_embd // n_head
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.hd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.register_buffer("reads", torch.arange(n_head) // (n_head // n_kv_head), persistent=False)
        self.register_buffer("seen", torch.tril(torch.ones(block_size, block_size, dtype=torch.bool)))

    def forward(self, x):
        B, T, C = x.size()
        if T > self.seen.size(0):
            raise ValueError(f"{T} tokens for {self.seen.size(0)}")
        q = self.q(x).reshape(B, T, self.n_head, self.hd).swapaxes(1, 2)
        kv = self.kv(x).reshape(B, T, 2, self.n_kv_head, self.hd)[:, :, :, self.reads]  # (B, T, 2, nh, hd)
        k, v = kv.permute(2, 0, 3, 1, 4)
        scores = torch.where(self.seen[:T, :T], q @ k.mT / self.hd**0.5, -torch.inf)
        return self.proj((scores.softmax(-1) @ v).swapaxes(1, 2).reshape(B, T, C))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
