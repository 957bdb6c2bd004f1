import torch
from torch import Tensor


def split_heads(x: Tensor, n_head: int) -> Tensor:
    """(B, T, C) -> (B, nh, T, hd)"""
    head_dim, rest = divmod(x.shape[-1], n_head)
    if rest:
        raise ValueError(f"C={x.shape[-1]} is not a multiple of n_head={n_head}")
    pieces = torch.tensor_split(x, n_head, dim=2)
    assert all(p.shape[-1] == head_dim for p in pieces)
    return torch.cat([p.unsqueeze(1) for p in pieces], 1)


def merge_heads(y: Tensor) -> Tensor:
    parts = y.split(1, dim=1)
    return torch.concat([p.squeeze(1) for p in parts], dim=2)
