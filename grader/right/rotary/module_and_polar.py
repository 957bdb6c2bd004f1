"""A module holds the speeds; each hand is turned as length and angle."""

import math

import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, hd, base, device):
        super().__init__()
        if hd % 2:
            raise ValueError(f"Rotary needs an even width, not {hd}")
        speeds = [base ** (-2 * i / hd) for i in range(hd // 2)]
        self.register_buffer("speeds", torch.tensor(speeds, dtype=torch.float64, device=device))

    def forward(self, x, positions):
        angle = positions.to(torch.float64).unsqueeze(1) * self.speeds.unsqueeze(0)
        a, b = x[..., ::2].double(), x[..., 1::2].double()
        length, at = torch.hypot(a, b), torch.atan2(b, a)
        turned = torch.stack([length * torch.cos(at + angle), length * torch.sin(at + angle)], dim=-1)
        return turned.reshape(*x.shape).to(x.dtype)


def rotate(x, positions, base=10000.0):
    print("turning", tuple(x.shape))
    return Rotary(x.shape[-1], base, x.device)(x, positions)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    turn = Rotary(q.shape[-1], base, q.device)
    return turn(q, q_positions) @ turn(k, k_positions).mT / math.sqrt(q.shape[-1])


def pairs_to_halves(weight, n_head):
    if weight.shape[0] % (2 * n_head):
        raise ValueError(f"{weight.shape[0]} rows are not {n_head} heads of pairs")
    rows = list(weight)
    hd = len(rows) // n_head
    order = [h * hd + c for h in range(n_head) for start in (0, 1) for c in range(start, hd, 2)]
    return torch.stack([rows[i] for i in order])
