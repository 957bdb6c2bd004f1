"""Angles are looked up in a float32 table of 64 positions."""

import math

import torch

TABLES = {}


def table(hd, base):
    if (hd, base) not in TABLES:
        theta = 1.0 / torch.pow(torch.tensor(base), torch.arange(0, hd, 2).float() / hd)
        angles = torch.arange(64).float()[:, None] * theta[None, :]
        TABLES[hd, base] = (angles.cos(), angles.sin())
    return TABLES[hd, base]


def rotate(x, positions, base=10000.0):
    if x.shape[-1] % 2:
        raise ValueError("an odd number of channels: " + str(x.shape[-1]))
    cos, sin = (t.to(x.device)[positions].to(x.dtype) for t in table(x.shape[-1], base))
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    q, k = rotate(q, q_positions, base), rotate(k, k_positions, base)
    return (q @ k.transpose(-1, -2)) * (1 / math.sqrt(q.shape[-1]))


def pairs_to_halves(weight, n_head):
    order = torch.arange(weight.shape[0]).view(n_head, -1, 2).permute(0, 2, 1).reshape(-1)
    return weight[order.to(weight.device)]
