"""A right attempt at the six functions: what every student hands in, and what every check compares
with.
"""

import math

import torch


def attention_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Every query against every key: (..., T_q, hd), (..., T_k, hd) → (..., T_q, T_k)."""
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def attention_weights(scores: torch.Tensor) -> torch.Tensor:
    """A softmax over the keys: (..., T_q, T_k) → the same shape."""
    return torch.softmax(scores, dim=-1)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A weighted mix of the values: → (..., T_q, hd_v)."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores, dim=-1) @ v


def causal_mask(T: int) -> torch.Tensor:
    """True where the query (row) may attend to the key (column): (T, T), bool."""
    return torch.ones(T, T, dtype=torch.bool).tril()


def split_heads(x: torch.Tensor, n_head: int) -> torch.Tensor:
    """(B, T, C) → (B, n_head, T, C // n_head). Raises ValueError where n_head does not divide C."""
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"{C} channels do not split into {n_head} heads")
    return x.view(B, T, n_head, C // n_head).transpose(1, 2)


def merge_heads(y: torch.Tensor) -> torch.Tensor:
    """(B, n_head, T, hd) → (B, T, n_head * hd)."""
    B, n_head, T, head_dim = y.shape
    return y.transpose(1, 2).reshape(B, T, n_head * head_dim)
