"""Reorders the channels, turns halves, and puts the channels back."""

import math

import torch


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rotate(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2 != 0:
        raise ValueError(f"rotary needs pairs of channels, got {d}")
    halves = torch.cat((x[..., ::2], x[..., 1::2]), dim=-1)
    freqs = torch.outer(positions.double(), 1.0 / (base ** (torch.arange(0, d, 2, device=x.device).double() / d)))
    emb = torch.cat((freqs, freqs), dim=-1)
    cos, sin = emb.cos().to(x.dtype), emb.sin().to(x.dtype)
    turned = halves * cos + rotate_half(halves) * sin
    return torch.stack(turned.chunk(2, dim=-1), dim=-1).reshape(x.shape)


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    # both sides stay as halves would do, too; here they are put back
    return torch.matmul(rotate(q, q_positions, base), rotate(k, k_positions, base).mT) / math.sqrt(k.shape[-1])


def pairs_to_halves(weight, n_head):
    return weight.unflatten(0, (n_head, -1, 2)).movedim(2, 1).flatten(0, 2)
