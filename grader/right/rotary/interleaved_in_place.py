from math import sqrt
from typing import Tuple

import torch


def cos_sin(positions, hd, base) -> Tuple[torch.Tensor, torch.Tensor]:
    exponent = torch.div(torch.arange(hd, device=positions.device), 2, rounding_mode="floor") * 2.0 / hd
    angle = torch.outer(positions.to(torch.float32), torch.as_tensor(base, device=positions.device) ** -exponent)
    return angle.cos(), angle.sin()


def rotate(x, positions, base=10000.0):
    *_, T, hd = x.shape
    if hd % 2:
        raise ValueError(f"odd: {hd}")
    cos, sin = cos_sin(positions, hd, base)
    turned = x.clone()
    turned *= cos
    swapped = x.view(*x.shape[:-1], hd // 2, 2).flip(-1).reshape(x.shape)
    sign = torch.ones(hd, dtype=x.dtype, device=x.device)
    sign[::2] = -1
    turned += swapped * sign * sin
    return turned


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    turned_q = rotate(q, q_positions, base)
    turned_k = rotate(k, k_positions, base)
    return torch.matmul(turned_q, turned_k.swapaxes(-1, -2)) / sqrt(q.size(-1))


def pairs_to_halves(weight, n_head):
    index = torch.arange(weight.size(0), device=weight.device).reshape(n_head, -1)
    index = torch.cat([index[:, 0::2], index[:, 1::2]], dim=1).flatten()
    return torch.gather(weight, 0, index[:, None].expand_as(weight))
