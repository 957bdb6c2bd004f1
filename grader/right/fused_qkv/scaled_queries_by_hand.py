"""q scaled before the product, softmax by hand from exp and sum with the maximum taken off; a module per dropout."""

import torch
import torch.nn as nn


def softmax(scores):
    scores = scores - scores.amax(dim=-1, keepdim=True)
    e = scores.exp()
    return e / e.sum(dim=-1, keepdim=True)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError(f"indivisible: {n_embd} / {n_head}")
        self.n_head = n_head
        self.d_head = n_embd // n_head
        self.max_len = block_size
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.dropouts = nn.ModuleDict({"attention": nn.Dropout(dropout), "residual": nn.Dropout(dropout)})
        self.register_buffer("causal", torch.ones(block_size, block_size).tril())

    def split(self, t):
        return t.view(*t.shape[:2], self.n_head, self.d_head).transpose(1, 2)

    def forward(self, x):
        _, T, C = x.shape
        if T > self.max_len:
            raise ValueError("too long: " + str(T) + " > " + str(self.max_len))
        z = self.qkv(x)
        q, k, v = self.split(z[..., :C]), self.split(z[..., C : 2 * C]), self.split(z[..., 2 * C :])
        q = q * self.d_head**-0.5
        m = self.causal[:T, :T]
        scores = (q @ k.transpose(-1, -2)) * m - 1e30 * (1 - m)
        y = self.dropouts["attention"](softmax(scores)) @ v
        y = torch.cat([y[:, h] for h in range(self.n_head)], dim=-1)
        return self.dropouts["residual"](self.proj(y))


def gpt2_attention(size):
    table = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
    if size not in table:
        raise ValueError(f"unknown size {size!r}, choose one of {list(table)}")
    n_embd, n_head = table[size]
    return CausalSelfAttention(n_embd, n_head, 1024)
