"""Two einsums with an axis for the sets and one for the group."""

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, n_embd, n_head, n_kv_head, block_size):
        super().__init__()
        if n_embd % n_head or n_head % n_kv_head:
            raise ValueError(f"{n_embd}, {n_head} and {n_kv_head} do not divide")
        self.shape = (n_kv_head, n_head // n_kv_head, n_embd // n_head)
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_kv_head * self.shape[-1], bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        bias = torch.zeros(block_size, block_size).masked_fill(torch.ones(block_size, block_size).triu(1) > 0, -torch.inf)
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, x):
        t = x.shape[1]
        if t > self.bias.shape[0]:
            raise ValueError(f"{t} > {self.bias.shape[0]}")
        sets, _, hd = self.shape
        q = self.q(x).unflatten(-1, self.shape)  # (b, t, s, g, d)
        kv = self.kv(x).unflatten(-1, (2, sets, hd))
        a = torch.einsum("bisgd,bjsd->bsgij", q, kv[:, :, 0]) * hd**-0.5
        a = (a + self.bias[:t, :t].to(a.dtype)).softmax(-1)
        return self.proj(torch.einsum("bsgij,bjsd->bisgd", a, kv[:, :, 1]).flatten(-3))


def kv_cache_bytes(n_layer, n_head, n_kv_head, head_dim, T, bytes_per_number=2):
    return 2 * n_layer * n_kv_head * head_dim * T * bytes_per_number
