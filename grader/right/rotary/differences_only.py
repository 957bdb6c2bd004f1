"""The scores without a rotated tensor: cosines and sines of differences of positions."""

import math

import torch


def speeds_of(hd, base, like):
    if hd % 2:
        raise ValueError(f"hd = {hd} is odd")
    return base ** -(torch.arange(hd // 2, dtype=torch.float64, device=like.device) * 2 / hd)


def rotate(x, positions, base=10000.0):
    angle = positions[:, None] * speeds_of(x.shape[-1], base, x)
    cos, sin = angle.cos().type_as(x), angle.sin().type_as(x)
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return out


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    apart = (q_positions[:, None] - k_positions[None, :]).unsqueeze(-1)
    angle = apart * speeds_of(q.shape[-1], base, q)  # (T_q, T_k, hd / 2)
    qa, qb = q[..., :, None, 0::2], q[..., :, None, 1::2]
    ka, kb = k[..., None, :, 0::2], k[..., None, :, 1::2]
    along, across = qa * ka + qb * kb, qa * kb - qb * ka
    scores = (along * angle.cos().type_as(q) + across * angle.sin().type_as(q)).sum(-1)
    return scores / math.sqrt(q.shape[-1])


def pairs_to_halves(weight, n_head):
    first, second = weight[0::2], weight[1::2]
    first = first.reshape(n_head, -1, weight.shape[1])
    second = second.reshape(n_head, -1, weight.shape[1])
    return torch.cat([first, second], dim=1).reshape(weight.shape)
