from __future__ import annotations

from typing import Iterator

import torch
from torch import Tensor, nn


class OneHead:
    """Head number h of the box."""

    def __init__(self, box: nn.Module, h: int) -> None:
        C = box.n_head * box.head_dim
        a = h * box.head_dim
        b = a + box.head_dim
        W = box.qkv.weight
        self.wq = W[a:b]
        self.wk = W[C + a : C + b]
        self.wv = W[2 * C + a : 2 * C + b]

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        q = x @ self.wq.T
        k = x @ self.wk.T
        v = x @ self.wv.T
        logits = q @ k.mT * (1 / self.wq.shape[0]) ** 0.5 + bias
        logits = logits - logits.max(dim=-1, keepdim=True).values
        e = logits.exp()
        return e @ v / e.sum(-1, keepdim=True)


def heads(box: nn.Module) -> Iterator[OneHead]:
    for h in range(box.n_head):
        yield OneHead(box, h)


def mha_by_loop(mha: nn.Module, x: Tensor) -> Tensor:
    T = x.shape[-2]
    bias = torch.zeros(T, T, dtype=x.dtype, device=x.device)
    bias[torch.ones_like(bias).triu(1).bool()] = float("-inf")
    side_by_side = torch.cat([one(x, bias) for one in heads(mha)], dim=-1)
    return side_by_side @ mha.proj.weight.T
