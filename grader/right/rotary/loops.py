import math

import torch


def rotate(x, positions, base=10000.0):
    hd = x.shape[-1]
    if hd % 2 == 1:
        raise ValueError("odd head_dim: %d" % hd)
    channels = []
    for i in range(hd // 2):
        speed = 1 / base ** (2 * i / hd)
        angle = positions * speed
        c, s = torch.cos(angle), torch.sin(angle)
        a, b = x[..., 2 * i], x[..., 2 * i + 1]
        channels.append((a * c - b * s).to(x.dtype))
        channels.append((a * s + b * c).to(x.dtype))
    return torch.stack(channels, dim=-1)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    q = rotate(q, q_positions, base)
    k = rotate(k, k_positions, base)
    rows = []
    for i in range(q.shape[-2]):
        rows.append((q[..., i : i + 1, :] * k).sum(-1) / math.sqrt(q.shape[-1]))
    return torch.stack(rows, dim=-2)


def pairs_to_halves(weight, n_head):
    out = torch.zeros_like(weight)
    C = weight.shape[0]
    hd = C // n_head
    for h in range(n_head):
        for i in range(hd // 2):
            out[h * hd + i] = weight[h * hd + 2 * i]
            out[h * hd + hd // 2 + i] = weight[h * hd + 2 * i + 1]
    return out
