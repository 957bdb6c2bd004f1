"""A function for each path in a table; refuses by assert; separate dropout probabilities held as floats."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def by_kernel(q: Tensor, k: Tensor, v: Tensor, p: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)


def by_hand(q: Tensor, k: Tensor, v: Tensor, p: float) -> Tensor:
    T = q.size(-2)
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))
    rows, columns = torch.triu_indices(T, T, offset=1, device=q.device)
    scores[..., rows, columns] = -math.inf
    return F.dropout(scores.softmax(-1), p, training=True).matmul(v)


PATHS = {True: by_kernel, False: by_hand}


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        assert n_embd % n_head == 0, f"{n_embd} channels, {n_head} heads"
        self.n_head = n_head
        self.block_size = block_size
        self.p = float(dropout)
        self.flash = flash
        self.qkv = nn.Linear(in_features=n_embd, out_features=3 * n_embd, bias=False)
        self.proj = nn.Linear(in_features=n_embd, out_features=n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        assert T <= self.block_size, f"{T} > {self.block_size}"
        qkv = self.qkv(x).reshape(B, T, 3 * self.n_head, C // self.n_head).transpose(1, 2)  # (B, 3 nh, T, hd)
        p = self.p if self.training else 0.0
        y = PATHS[bool(self.flash)](*qkv.split(self.n_head, dim=1), p)
        return F.dropout(self.proj(y.swapaxes(1, 2).contiguous().view(B, T, C)), p)


def max_path_difference(module: CausalSelfAttention, x: Tensor, verbose: bool = False) -> float:
    flash, training = module.flash, module.training
    module.eval()
    try:
        with torch.no_grad():
            outputs = torch.stack([module(x) for module.flash in (True, False)])
    finally:
        module.flash = flash
        module.train(training)
    difference = outputs.diff(dim=0).abs().max()
    if verbose:
        print(difference)
    return difference.item()
