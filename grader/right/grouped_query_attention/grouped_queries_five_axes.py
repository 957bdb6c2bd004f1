"""Nothing is repeated: the queries get an axis for the group, and keys and values broadcast over it."""

import math

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, n_kv_head: int, block_size: int) -> None:
        super().__init__()
        assert n_embd % n_head == 0, f"{n_embd} % {n_head}"
        assert n_head % n_kv_head == 0, f"{n_head} % {n_kv_head}"
        self.sets, self.group, self.hd = n_kv_head, n_head // n_kv_head, n_embd // n_head
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.hd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.register_buffer("hidden", torch.ones(block_size, block_size).triu(1).bool())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        assert len(self.hidden) >= T, f"{T} tokens, block of {len(self.hidden)}"
        q = self.q(x).unflatten(-1, (self.sets, self.group, self.hd)).permute(0, 2, 3, 1, 4)  # (B, sets, group, T, hd)
        k, v = (t.unflatten(-1, (self.sets, 1, self.hd)).permute(0, 2, 3, 1, 4) for t in self.kv(x).chunk(2, -1))
        scores = (q @ k.mT) / math.sqrt(self.hd)
        weights = scores.masked_fill(self.hidden[:T, :T], float("-inf")).softmax(-1)
        y = weights @ v  # (B, sets, group, T, hd)
        return self.proj(y.permute(0, 3, 1, 2, 4).flatten(2))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
