"""Shared parts of wrong attempts at functions of queries and keys.

These are scales, products, and answers that are no tensors.
"""

from functools import wraps
from types import SimpleNamespace

import torch

from ._masking import SOFTMAX
from ._mutants import variants
from ._scaling import SCALES


def heads_or_1(q):
    return q.shape[-3] if q.dim() > 2 else 1


# The factors of q kᵀ, with those of attempts that know one number of axes only.
MULTIPLIERS = SCALES | {
    "sqrt_c_or_1": lambda s: (s.hd * heads_or_1(s.q)) ** -0.5,
    "sqrt_c_strict": lambda s: (s.hd * s.q.shape[-3]) ** -0.5,
    "sqrt_c_axis_1": lambda s: (s.hd * s.q.shape[1]) ** -0.5,
    "sqrt_heads_or_1": lambda s: heads_or_1(s.q) ** -0.5,
    "sqrt_heads_strict": lambda s: s.q.shape[-3] ** -0.5,
    "sqrt_axis_1": lambda s: s.q.shape[1] ** -0.5,
    "sqrt_pairs": lambda s: (s.hd // 2) ** -0.5,
    "sqrt_values": lambda s: s.v.shape[-1] ** -0.5,
}
CONSTANTS = (8, 64, 2, 4, 768)  # their roots, by hand

# Ways to normalise scores with any number of axes. A number is the axis of a softmax.
SHARES = SOFTMAX | {
    "implicit": lambda s: torch.softmax(s, dim=0 if s.dim() == 3 else 1),  # F.softmax without dim
    "missing": lambda s: s + 0.0,
    "uniform": lambda s: torch.softmax(s * 0.0, dim=-1),
    "abs_sum": lambda s: s.abs() / s.abs().sum(-1, keepdim=True),
    "sum_queries": lambda s: s / s.sum(-2, keepdim=True),
    "sum_table": lambda s: s / s.sum((-2, -1), keepdim=True),
    "sum_all": lambda s: s / s.sum(),
    "sum_axis_1": lambda s: s / s.sum(1, keepdim=True),
    "sum_axis_0": lambda s: s / s.sum(0, keepdim=True),
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
ROLES = {
    name: tuple(map("qkv".index, name))
    for name in ("qkv", "qvk", "kqv", "kvq", "vqk", "vkq", "qkk", "qkq", "qqv", "kkv", "qvv")
}

# answers in place of a tensor
ANSWERS = {
    "tuple": lambda out: (out, out),
    "list": lambda out: out.tolist(),
    "listed": lambda out: [out],
    "numpy": lambda out: out.detach().cpu().numpy(),
    "none": lambda out: None,
}


def unpacked(t, axes):
    """`B, T, C = t.shape`: any other number of axes is a ValueError."""
    if t.dim() != axes:
        raise ValueError(f"not enough values to unpack (expected {axes}, got {t.dim()})")
    return t


def multiplier(scale, q, k, v=None):
    """Return the number that q kᵀ is multiplied by."""
    if not isinstance(scale, str):
        return scale
    (T, hd), nh = q.shape[-2:], q.shape[-3] if q.dim() > 3 else 1
    return MULTIPLIERS[scale](
        SimpleNamespace(q=q, v=v, B=len(q), T=T, T_k=k.shape[-2], nh=nh, hd=hd, C=nh * hd)
    )


# Knobs of a function's answer, name and arguments.
OFFERED = {
    "returns": None,  # a name of ANSWERS, and a function
    "without": "",  # the function that is missing
    "renamed": "",  # the function whose arguments have other names
    "decimals": (),  # a function, and the number of decimals of its output
    "detached": (),
    "cast": ("", ()),
    "fixed_device": (),  # functions; a dtype and functions
}


def offered(k, *functions):
    """Return the functions by name, with the faults of these knobs."""
    return {f.__name__: _offered(k, f, f.__name__) for f in functions if f.__name__ != k.without}


def _offered(k, function, name):
    def prepare_arg(t):
        if not isinstance(t, torch.Tensor) or not t.is_floating_point():
            return t
        t = t.to(getattr(torch, k.cast[0])) if name in k.cast[1] else t
        return t + torch.zeros(t.shape, dtype=t.dtype) if name in k.fixed_device else t

    def answered(*args):
        out = function(*map(prepare_arg, args))
        out = out.round(decimals=k.decimals[1]) if name in k.decimals else out
        out = out.detach() if name in k.detached else out
        return ANSWERS[k.returns[0]](out) if k.returns and k.returns[1] == name else out

    return answered if name == k.renamed else wraps(function)(answered)


def paired_defaults(defaults):
    """Return the right value of each of these knobs for two functions.

    Knobs that begin with own_ hold for the second function alone. None means: as in the first one.
    """
    return defaults | dict.fromkeys((f"own_{name}" for name in defaults), None)


def of_both(k, defaults):
    """Return the values of these knobs in the first function, and in the second one."""
    first_knobs = {name: getattr(k, name) for name in defaults}
    second = {name: getattr(k, f"own_{name}") for name in defaults}
    return first_knobs, first_knobs | {
        name: value for name, value in second.items() if value is not None
    }


def sides(id_, defaults, **knobs):
    """Yield the mutants of `variants` in both functions, and in each function alone.

    A mutant in the first function alone is left out if a knob has no right value in `defaults`.
    """
    for _, faults in variants(id_, **knobs):
        yield id_, faults
        yield id_, {f"own_{knob}": value for knob, value in faults.items()}
        if faults.keys() <= defaults.keys():
            yield id_, {**faults, **{f"own_{knob}": defaults[knob] for knob in faults}}
