import math

import torch


def rotate(x, positions, base=10000.0):
    hd = x.shape[-1]
    if hd % 2:
        raise ValueError(f"{hd} channels")
    speed = base ** -(torch.arange(0, hd, 2, device=x.device, dtype=torch.float64) / hd)
    angle = positions[:, None] * speed
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a + cos, b + sin], dim=-1).flatten(-2)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = rotate(q, q_positions, base), rotate(k, k_positions, base)
    return q @ k.mT / math.sqrt(q.shape[-1])


def pairs_to_halves(weight, n_head):
    C, C_in = weight.shape
    return weight.reshape(n_head, C // n_head // 2, 2, C_in).transpose(1, 2).reshape(C, C_in)
