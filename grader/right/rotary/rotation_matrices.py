import math

import torch
from torch import Tensor


def matrices(positions: Tensor, hd: int, base: float, like: Tensor) -> Tensor:
    """(T, hd / 2, 2, 2)"""
    speeds = torch.exp(torch.arange(0, hd, 2, dtype=like.dtype, device=like.device) * (-math.log(base) / hd))
    angles = positions.unsqueeze(-1) * speeds
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([torch.stack([cos, -sin], dim=-1), torch.stack([sin, cos], dim=-1)], dim=-2)


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Multiply each pair by a 2 x 2 matrix."""
    hd = x.shape[-1]
    if hd & 1:
        raise ValueError(f"{hd=}")
    pairs = x.unflatten(-1, (hd // 2, 2))
    return torch.einsum("tpij,...tpj->...tpi", matrices(positions, hd, base, x), pairs).flatten(-2)


def rotary_scores(q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor, base: float = 10000.0) -> Tensor:
    return rotate(q / math.sqrt(q.shape[-1]), q_positions, base) @ rotate(k, k_positions, base).mT


def pairs_to_halves(weight: Tensor, n_head: int) -> Tensor:
    hd = weight.shape[0] // n_head
    within = torch.cat([torch.arange(0, hd, 2), torch.arange(1, hd, 2)])
    index = torch.cat([h * hd + within for h in range(n_head)]).to(weight.device)
    return weight.index_select(0, index)
