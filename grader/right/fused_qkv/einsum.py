"""Every product an einsum, straight from the weight cut into (3, nh, hd, C); -inf added."""

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd} is not a multiple of {n_head}")
        self.heads, self.block = n_head, block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.p = dropout
        self.register_buffer("hidden", torch.full((block_size, block_size), -torch.inf).triu(1), persistent=False)

    def forward(self, x):
        _B, T, C = x.shape
        if T > self.block:
            raise ValueError(f"{T} > {self.block}")
        w = self.qkv.weight.view(3, self.heads, C // self.heads, C)
        q, k, v = torch.einsum("btc,shdc->sbhtd", x, w)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / (C // self.heads) ** 0.5
        weights = torch.softmax(scores + self.hidden[:T, :T], dim=-1)
        weights = nn.functional.dropout(weights, self.p, self.training)
        y = torch.einsum("bhij,bhjd->bihd", weights, v)
        out = torch.einsum("bihd,ohd->bio", y, self.proj.weight.view(C, self.heads, -1))
        return nn.functional.dropout(out, self.p, training=self.training)


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose one of {list(table)}")
    n_embd, n_head = table[size]
    made = CausalSelfAttention(n_embd, n_head, block_size=1024)
    made.size = size
    return made
