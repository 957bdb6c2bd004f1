from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention


def split(t: Tensor, n_head: int) -> Tensor:
    return t.unflatten(-1, (n_head, -1)).transpose(1, 2)


def join(t: Tensor) -> Tensor:
    return t.transpose(1, 2).flatten(2)


class CausalSelfAttention(nn.Module):
    def __init__(
        self, n_embd: int, n_head: int, block_size: int, dropout: float = 0.0, flash: bool = True
    ) -> None:
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_head={n_head} does not divide n_embd={n_embd}")
        self.n_head = n_head
        self.block_size = block_size
        self.dropout = dropout
        self.flash = flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        above = torch.triu(torch.ones(block_size, block_size), diagonal=1).bool()
        self.register_buffer("above", above, persistent=False)

    @property
    def p(self) -> float:
        return self.dropout if self.training else 0.0

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        if T > self.block_size:
            raise ValueError(f"T={T} exceeds block_size={self.block_size}")
        q, k, v = (split(t, self.n_head) for t in self.qkv(x).chunk(3, dim=-1))
        if self.flash:
            mixed = scaled_dot_product_attention(q, k, v, dropout_p=self.p, is_causal=True)
        else:
            scores = q @ k.mT / math.sqrt(q.shape[-1])
            scores = scores.masked_fill(self.above[:T, :T], -math.inf)
            weights = torch.softmax(scores, dim=-1)
            weights = dropout(weights, self.p)
            mixed = weights @ v
        return dropout(self.proj(join(mixed)), self.p)


def max_path_difference(module: CausalSelfAttention, x: Tensor) -> float:
    twin = copy.deepcopy(module).eval()
    with torch.no_grad():
        twin.flash = True
        one = twin(x)
        twin.flash = False
        other = twin(x)
    return torch.dist(one, other, p=float("inf")).item()
