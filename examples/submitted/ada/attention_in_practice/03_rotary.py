import math

import torch


def rotate(x, positions, base=10000.0):
    hd = x.shape[-1]
    if hd % 2 == 1:
        raise ValueError(f"an odd number of channels: {hd}")
    i = torch.arange(hd // 2, device=x.device)
    angles = torch.outer(positions.to(torch.float64), base ** (-2.0 * i / hd).to(torch.float64))
    turn = torch.polar(torch.ones_like(angles), angles)
    z = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * turn).flatten(-2).to(x.dtype)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = rotate(q, q_positions, base), rotate(k, k_positions, base)
    return torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.size(-1))


def pairs_to_halves(weight, n_head):
    heads = weight.chunk(n_head, dim=0)
    return torch.cat([torch.cat([h[0::2], h[1::2]]) for h in heads])
