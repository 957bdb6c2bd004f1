"""What wrong attempts at functions of queries and keys share: scales, products, and answers that are no tensors."""

import math

import torch

from ._masking import PRECEDENCE, PRECEDENCE_OF_HD

# What q kᵀ is multiplied by, for each way to get the scale wrong. A number stands for itself.
SCALES = {
    "sqrt_hd": lambda q, k, v=None: q.shape[-1] ** -0.5,
    "missing": lambda q, k, v=None: 1.0,
    "nothing": lambda q, k, v=None: 0.0,
    "hd": lambda q, k, v=None: 1 / q.shape[-1],
    "times_sqrt_hd": lambda q, k, v=None: q.shape[-1] ** 0.5,
    "sqrt_c": lambda q, k, v=None: (q.shape[-1] * (q.shape[-3] if q.dim() > 3 else 1)) ** -0.5,
    "sqrt_heads": lambda q, k, v=None: (q.shape[-3] if q.dim() > 3 else 1) ** -0.5,
    "sqrt_axis_1": lambda q, k, v=None: q.shape[1] ** -0.5,
    "sqrt_axis_0": lambda q, k, v=None: q.shape[0] ** -0.5,
    "sqrt_pairs": lambda q, k, v=None: (q.shape[-1] // 2) ** -0.5,
    "sqrt_queries": lambda q, k, v=None: q.shape[-2] ** -0.5,
    "sqrt_keys": lambda q, k, v=None: k.shape[-2] ** -0.5,
    "sqrt_values": lambda q, k, v: v.shape[-1] ** -0.5,
    "rounded_down": lambda q, k, v=None: 1 / math.floor(q.shape[-1] ** 0.5),
    "rounded": lambda q, k, v=None: 1 / round(q.shape[-1] ** 0.5),
    "rounded_up": lambda q, k, v=None: 1 / math.ceil(q.shape[-1] ** 0.5),
}
SCALES |= {way: lambda q, k, v=None, way=way: PRECEDENCE[way](q.shape[-1], None, None) for way in PRECEDENCE_OF_HD}
CONSTANTS = (8, 64, 2, 4, 768)  # their roots, by hand

# How keys meet queries; all but the first know one number of axes only.
PRODUCTS = {
    "any": lambda q, k: q @ k.mT,
    "T": lambda q, k: q @ k.permute(*reversed(range(k.dim()))),
    "transpose_12": lambda q, k: q @ k.transpose(1, 2),
    "transpose_23": lambda q, k: q @ k.transpose(2, 3),
    "bmm": lambda q, k: torch.bmm(q, k.mT),
    "unpack_3": lambda q, k: unpacked(q, 3) @ k.mT,
    "unpack_4": lambda q, k: unpacked(q, 4) @ k.mT,
}

# What is returned in place of a tensor.
ANSWERS = {
    "tuple": lambda out: (out, out),
    "list": lambda out: out.tolist(),
    "numpy": lambda out: out.detach().cpu().numpy(),
    "none": lambda out: None,
}


def unpacked(t, axes):
    """`B, T, C = t.shape`: any other number of axes is a ValueError."""
    if t.dim() != axes:
        raise ValueError(f"not enough values to unpack (expected {axes}, got {t.dim()})")
    return t


def scaled(scale, q, k, v=None):
    """The number that q kᵀ is multiplied by."""
    return SCALES[scale](q, k, v) if isinstance(scale, str) else scale
