"""What wrong attempts at functions of queries and keys share: scales, products, and answers that are no tensors."""

import math
from functools import wraps

import torch

from ._masking import PRECEDENCE, PRECEDENCE_OF_HD, SOFTMAX

# What q kᵀ is multiplied by, for each way to get the scale wrong. A number stands for itself.
MULTIPLIERS = {
    "sqrt_hd": lambda q, k, v=None: q.shape[-1] ** -0.5,
    "missing": lambda q, k, v=None: 1.0,
    "nothing": lambda q, k, v=None: 0.0,
    "hd": lambda q, k, v=None: 1 / q.shape[-1],
    "times_sqrt_hd": lambda q, k, v=None: q.shape[-1] ** 0.5,
    "sqrt_c": lambda q, k, v=None: (q.shape[-1] * (q.shape[-3] if q.dim() > 3 else 1)) ** -0.5,
    "sqrt_c_or_1": lambda q, k, v=None: (q.shape[-1] * (q.shape[-3] if q.dim() > 2 else 1)) ** -0.5,
    "sqrt_c_strict": lambda q, k, v=None: (q.shape[-1] * q.shape[-3]) ** -0.5,
    "sqrt_c_axis_1": lambda q, k, v=None: (q.shape[-1] * q.shape[1]) ** -0.5,
    "sqrt_heads": lambda q, k, v=None: (q.shape[-3] if q.dim() > 3 else 1) ** -0.5,
    "sqrt_heads_or_1": lambda q, k, v=None: (q.shape[-3] if q.dim() > 2 else 1) ** -0.5,
    "sqrt_heads_strict": lambda q, k, v=None: q.shape[-3] ** -0.5,
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
MULTIPLIERS |= {way: lambda q, k, v=None, way=way: PRECEDENCE[way](q.shape[-1], None, None) for way in PRECEDENCE_OF_HD}
CONSTANTS = (8, 64, 2, 4, 768)  # their roots, by hand

# How the scores are normalised. A number is the axis of a softmax.
SHARES = {way: SOFTMAX[way] for way in ("detached_sum", "sum", "exp", "exp_shifted", "queries_by_hand")} | {
    "implicit": lambda s: torch.softmax(s, dim=0 if s.dim() == 3 else 1),  # F.softmax without dim
    "table": lambda s: torch.softmax(s.flatten(-2), dim=-1).view(s.shape),
    "all": lambda s: torch.softmax(s.flatten(), dim=0).view(s.shape),
    "missing": lambda s: s + 0.0,
    "uniform": lambda s: torch.softmax(s * 0.0, dim=-1),
    "sum_abs": lambda s: s / s.abs().sum(-1, keepdim=True),
    "abs_sum": lambda s: s.abs() / s.abs().sum(-1, keepdim=True),
    "sum_queries": lambda s: s / s.sum(-2, keepdim=True),
    "sum_table": lambda s: s / s.sum((-2, -1), keepdim=True),
    "sum_all": lambda s: s / s.sum(),
    "sum_axis_1": lambda s: s / s.sum(1, keepdim=True),
    "sum_axis_0": lambda s: s / s.sum(0, keepdim=True),
    "sum_of_zeros": lambda s: SHARES["sum"](SHARES["zeros"](s)),
    "sum_abs_of_zeros": lambda s: SHARES["sum_abs"](SHARES["zeros"](s)),
    "zeros": lambda s: s.masked_fill(s == -math.inf, 0.0),
}

# How keys meet queries; all but the first know one number of axes only.
PRODUCTS = {
    "any": lambda q, k: q @ k.mT,
    "T": lambda q, k: q @ k.permute(*reversed(range(k.dim()))),
    "t": lambda q, k: q @ k.t(),
    "transpose_01": lambda q, k: q @ k.transpose(0, 1),
    "transpose_12": lambda q, k: q @ k.transpose(1, 2),
    "transpose_23": lambda q, k: q @ k.transpose(2, 3),
    "permute_021": lambda q, k: q @ k.permute(0, 2, 1),
    "permute_0132": lambda q, k: q @ k.permute(0, 1, 3, 2),
    "bmm": lambda q, k: torch.bmm(q, k.mT),
    "mm": lambda q, k: torch.mm(q, k.mT),
    "einsum_2": lambda q, k: torch.einsum("qc,kc->qk", q, k),
    "einsum_3": lambda q, k: torch.einsum("bqc,bkc->bqk", q, k),
    "einsum_4": lambda q, k: torch.einsum("bhqc,bhkc->bhqk", q, k),
    "unpack_2": lambda q, k: unpacked(q, 2) @ k.mT,
    "unpack_3": lambda q, k: unpacked(q, 3) @ k.mT,
    "unpack_4": lambda q, k: unpacked(q, 4) @ k.mT,
}

# Which of q, k, v stands where query, key and value belong.
ROLES = {name: tuple("qkv".index(c) for c in name) for name in ("qkv", "qvk", "kqv", "kvq", "vqk", "vkq", "qkk", "qkq")}

# What is returned in place of a tensor.
ANSWERS = {
    "tuple": lambda out: (out, out),
    "list": lambda out: out.tolist(),
    "listed": lambda out: [out],
    "numpy": lambda out: out.detach().cpu().numpy(),
    "none": lambda out: None,
}

# A dtype or a device that is written in.
CASTS = {"follows": lambda z: z} | {
    name: lambda z, name=name: getattr(z, name)() for name in ("float", "double", "half", "bfloat16", "long")
}
DEVICES = {
    "follows": lambda z: z,
    "cpu": lambda z: z.cpu(),
    "filled": lambda z: torch.empty(z.shape, dtype=z.dtype).copy_(z),
    "added": lambda z: z + torch.zeros(z.shape, dtype=z.dtype),
    "multiplied": lambda z: z @ torch.eye(z.shape[-1], dtype=z.dtype),
}


def unpacked(t, axes):
    """`B, T, C = t.shape`: any other number of axes is a ValueError."""
    if t.dim() != axes:
        raise ValueError(f"not enough values to unpack (expected {axes}, got {t.dim()})")
    return t


def multiplier(scale, q, k, v=None):
    """The number that q kᵀ is multiplied by."""
    return MULTIPLIERS[scale](q, k, v) if isinstance(scale, str) else scale


# What a function returns, which is missing, and which has other names for its arguments.
OFFERED = {"returns": None, "without": "", "renamed": ""}


def offered(k, *functions, dressed=lambda name, run: run):
    """The functions by their names, as these knobs would have them. dressed: what else is done to any of them, (name, it)."""
    return {f.__name__: _offered(k, f, dressed(f.__name__, f)) for f in functions if f.__name__ != k.without}


def _offered(k, function, run):
    name = function.__name__

    def answered(*args):
        out = run(*args)
        return ANSWERS[k.returns[0]](out) if k.returns and k.returns[1] == name else out

    return answered if name == k.renamed else wraps(function)(answered)


def own(right):
    """The right value of each of these knobs, and of those of the second function alone, which are as the first one's."""
    return right | dict.fromkeys((f"own_{name}" for name in right), None)


def of_both(k, right):
    """The values of these knobs in the first function, and in the second one."""
    first = {name: getattr(k, name) for name in right}
    second = {name: getattr(k, f"own_{name}") for name in right}
    return first, first | {name: value for name, value in second.items() if value is not None}


def sides(id_, right, faults):
    """In both functions, in the second one alone, in the first one alone if these knobs have a right value."""
    yield id_, faults
    yield id_, {f"own_{knob}": value for knob, value in faults.items()}
    if faults.keys() <= right.keys():
        yield id_, {**faults, **{f"own_{knob}": right[knob] for knob in faults}}
