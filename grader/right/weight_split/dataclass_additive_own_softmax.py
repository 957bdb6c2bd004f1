from __future__ import annotations

import dataclasses
import math

import torch
from torch import Tensor, nn


@dataclasses.dataclass(frozen=True)
class HeadPlan:
    width: int
    heads: int
    context: int
    p: float

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"{self.width} channels do not split into {self.heads} equal heads")

    @property
    def head_dim(self) -> int:
        return self.width // self.heads


def my_softmax(s: Tensor) -> Tensor:
    e = torch.exp(s - s.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def penalty(T: int, like: Tensor) -> Tensor:
    """0 for what may be seen, -inf for what may not."""
    return torch.full((T, T), -math.inf, dtype=like.dtype, device=like.device).triu(diagonal=1)


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        num_heads: int,
        dropout: float = 0.0,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.plan = HeadPlan(d_out, num_heads, context_length, dropout)
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out, bias=True)

    def _heads(self, t: Tensor) -> Tensor:
        b, n, _ = t.shape
        return t.reshape(b, n, self.plan.heads, self.plan.head_dim).permute(0, 2, 1, 3)

    def _drop(self, w: Tensor) -> Tensor:
        return nn.functional.dropout(w, p=self.plan.p, training=self.training)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.plan.context:
            raise ValueError(f"sequence of {n} tokens, context of {self.plan.context}")
        q, k, v = map(self._heads, (self.W_query(x), self.W_key(x), self.W_value(x)))
        scores = torch.matmul(q, k.mT) / math.sqrt(self.plan.head_dim)
        scores = scores + penalty(n, scores)
        weights = self._drop(my_softmax(scores))
        mixed = torch.matmul(weights, v)
        return self.out_proj(mixed.permute(0, 2, 1, 3).reshape(b, n, self.plan.width))
