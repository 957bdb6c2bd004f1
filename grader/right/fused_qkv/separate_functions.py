"""The steps as functions, typed; refuses by assert; GPT-2's sizes in a dataclass."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Size:
    n_embd: int
    n_head: int
    block_size: int = 1024


SIZES = {"small": Size(768, 12), "medium": Size(1024, 16), "large": Size(1280, 20), "xl": Size(1600, 25)}


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    return torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))


def causal(scores: Tensor) -> Tensor:
    T = scores.size(-1)
    rows, columns = torch.triu_indices(T, T, offset=1, device=scores.device)
    scores = scores.clone()
    scores[..., rows, columns] = -math.inf
    return scores


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, block_size: int, dropout: float = 0.0) -> None:
        super().__init__()
        assert n_embd % n_head == 0, f"{n_embd} channels, {n_head} heads"
        self.n_head = n_head
        self.block_size = block_size
        self.qkv = nn.Linear(in_features=n_embd, out_features=3 * n_embd, bias=False)
        self.proj = nn.Linear(in_features=n_embd, out_features=n_embd, bias=False)
        self.attention_dropout = nn.Dropout(dropout)
        self.output_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, verbose: bool = False) -> Tensor:
        B, T, C = x.shape
        assert T <= self.block_size, f"{T} > {self.block_size}"
        qkv = self.qkv(x).reshape(B, T, 3 * self.n_head, C // self.n_head).transpose(1, 2)  # (B, 3 nh, T, hd)
        q, k, v = qkv.split(self.n_head, dim=1)
        weights = torch.nn.functional.softmax(causal(attention_scores(q, k)), dim=-1)
        if verbose:
            print(weights)
        y = self.attention_dropout(weights).matmul(v)
        y = y.swapaxes(1, 2).contiguous().view(B, T, C)
        return self.output_dropout(self.proj(y))


def gpt2_attention(size: str) -> CausalSelfAttention:
    assert size in SIZES, f"{size} is none of small, medium, large, xl"
    s = SIZES[size]
    return CausalSelfAttention(s.n_embd, s.n_head, s.block_size)
