"""A method for each path; the comparison calls them on shared q, k, v, and never flips the flag."""

import torch
from torch import Tensor, nn


class CausalSelfAttention(nn.Module):
    flash: bool

    def __init__(self, n_embd: int, n_head: int, block_size: int, dropout: float = 0.0, flash: bool = True) -> None:
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_embd} is not a multiple of {n_head}")
        self.n_head = n_head
        self.block_size = block_size
        self.dropout = dropout
        self.flash = flash
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def heads(self, x: Tensor) -> list[Tensor]:
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError(f"{T} > {self.block_size}")
        return list(self.qkv(x).view(B, T, 3, self.n_head, C // self.n_head).permute(2, 0, 3, 1, 4).unbind(0))

    def fused(self, q: Tensor, k: Tensor, v: Tensor, p: float) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)

    def manual(self, q: Tensor, k: Tensor, v: Tensor, p: float) -> Tensor:
        T = q.shape[-2]
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        scores = (q @ k.mT) * q.shape[-1] ** -0.5
        weights = scores.masked_fill(future, torch.finfo(q.dtype).min).softmax(-1)
        return nn.functional.dropout(weights, p, training=p > 0) @ v

    def join(self, y: Tensor) -> Tensor:
        return nn.functional.dropout(self.proj(y.transpose(1, 2).flatten(2)), self.dropout, self.training)

    def forward(self, x: Tensor) -> Tensor:
        way = self.fused if self.flash else self.manual
        return self.join(way(*self.heads(x), self.dropout if self.training else 0.0))


def max_path_difference(module: CausalSelfAttention, x: Tensor) -> float:
    with torch.inference_mode():
        q, k, v = module.heads(x)
        a, b = (way(q, k, v, 0.0).transpose(1, 2).flatten(2) for way in (module.fused, module.manual))
        return (module.proj(a) - module.proj(b)).abs().max().item()
