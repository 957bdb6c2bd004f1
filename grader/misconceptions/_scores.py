"""What wrong attempts at functions of queries and keys share: scales, products, and answers that
are no tensors.
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

# How the scores are normalised, where the number of axes is not known. A number is the axis of a
# softmax.
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

# What is returned in place of a tensor.
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
    """The number that q kᵀ is multiplied by."""
    if not isinstance(scale, str):
        return scale
    (T, hd), nh = q.shape[-2:], q.shape[-3] if q.dim() > 3 else 1
    return MULTIPLIERS[scale](
        SimpleNamespace(q=q, v=v, B=len(q), T=T, T_k=k.shape[-2], nh=nh, hd=hd, C=nh * hd)
    )


# What functions return and are called, and what becomes of their arguments.
OFFERED = {
    "returns": None,  # of ANSWERS, and a function
    "without": "",
    "renamed": "",  # a function that is missing, or whose arguments have other names
    "decimals": (),  # a function, and to how many its output is rounded
    "detached": (),
    "cast": ("", ()),
    "fixed_device": (),  # functions; a dtype and functions
}


def offered(k, *functions):
    """The functions by their names, as these knobs would have them."""
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
    """The right value of each of these knobs, and of those of the second function alone, which are
    as the first one's.
    """
    return defaults | dict.fromkeys((f"own_{name}" for name in defaults), None)


def of_both(k, defaults):
    """The values of these knobs in the first function, and in the second one."""
    first_knobs = {name: getattr(k, name) for name in defaults}
    second = {name: getattr(k, f"own_{name}") for name in defaults}
    return first_knobs, first_knobs | {
        name: value for name, value in second.items() if value is not None
    }


def sides(id_, defaults, **knobs):
    """As `each`: in both functions, in the second one alone, in the first one alone if these knobs
    have a right value.
    """
    for _, faults in variants(id_, **knobs):
        yield id_, faults
        yield id_, {f"own_{knob}": value for knob, value in faults.items()}
        if faults.keys() <= defaults.keys():
            yield id_, {**faults, **{f"own_{knob}": defaults[knob] for knob in faults}}
