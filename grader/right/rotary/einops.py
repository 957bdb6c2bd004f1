import torch
from einops import einsum, rearrange, repeat


def rotate(x, positions, base=10000.0):
    if x.shape[-1] % 2:
        raise ValueError(f"the last axis has {x.shape[-1]} channels, an odd number")
    pairs = rearrange(x, "... (p two) -> ... p two", two=2)
    p = torch.arange(pairs.shape[-2], device=x.device, dtype=x.dtype)
    angles = einsum(positions.to(x.dtype), base ** (-p / pairs.shape[-2]), "t, p -> t p")
    cos, sin = repeat(angles.cos(), "t p -> t p 1"), repeat(angles.sin(), "t p -> t p 1")
    partner = torch.stack([-pairs[..., 1], pairs[..., 0]], dim=-1)
    return rearrange(pairs * cos + partner * sin, "... p two -> ... (p two)")


def rotary_scores(q, k, q_positions, k_positions, base=10000.0):
    dots = einsum(rotate(q, q_positions, base), rotate(k, k_positions, base), "... i d, ... j d -> ... i j")
    return dots / q.shape[-1] ** 0.5


def pairs_to_halves(weight, n_head):
    return rearrange(weight, "(h p two) c -> (h two p) c", h=n_head, two=2)
