"""Fused causal self-attention, typed to the teeth."""

from __future__ import annotations

import enum
import math
from typing import Final, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class QKV(NamedTuple):
    q: Tensor
    k: Tensor
    v: Tensor


class Size(enum.Enum):
    SMALL = (768, 12)
    MEDIUM = (1024, 16)
    LARGE = (1280, 20)
    XL = (1600, 25)


class CausalSelfAttention(nn.Module):
    block_size: Final[int]

    def __init__(self, n_embd: int, n_head: int, block_size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.head_dim, left_over = divmod(n_embd, n_head)
        if left_over:
            raise ValueError(f"{n_embd=} and {n_head=} leave {left_over} channels over")
        self.n_head, self.block_size, self.p = n_head, block_size, float(dropout)
        self.qkv = nn.Linear(n_embd, n_embd * 3, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def _project(self, x: Tensor) -> QKV:
        # (B, T, 3C) -> (B, T, 3, nh, hd) -> (3, B, nh, T, hd)
        fused = self.qkv(x).unflatten(-1, (3, self.n_head, self.head_dim))
        return QKV(*fused.permute(2, 0, 3, 1, 4).unbind(0))

    def _weights(self, q: Tensor, k: Tensor) -> Tensor:
        n = q.size(-2)
        at = torch.arange(n, device=q.device)
        visible = at.unsqueeze(1).ge(at)
        scores = q @ k.mT * self.head_dim**-0.5
        scores = torch.where(visible, scores, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        return F.dropout(weights, self.p, training=self.training)

    def forward(self, x: Tensor) -> Tensor:
        if (n := x.size(1)) > self.block_size:
            raise ValueError(f"cannot attend over {n} tokens with a block of {self.block_size}")
        q, k, v = self._project(x)
        answers = self._weights(q, k) @ v
        joined = answers.transpose(1, 2).flatten(-2)
        return F.dropout(self.proj(joined), self.p, training=self.training)


def gpt2_attention(size: str) -> CausalSelfAttention:
    match size:
        case "small":
            wanted = Size.SMALL
        case "medium":
            wanted = Size.MEDIUM
        case "large":
            wanted = Size.LARGE
        case "xl":
            wanted = Size.XL
        case _:
            raise ValueError(f"{size!r} is none of small, medium, large, xl")
    n_embd, n_head = wanted.value
    return CausalSelfAttention(n_embd, n_head, block_size=1024)
