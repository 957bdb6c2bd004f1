"""Wrong attempts at the attention scores: one implementation whose knobs turn one fault each."""

import math

import torch

from ._masking import KEYS_NOT_TRANSPOSED, PRECEDENCE, PRECEDENCE_OF_HD, ROUNDED_SCORES, SCALES_TRIED

# What q kᵀ is multiplied by, for each way to get the scale wrong. A number stands for itself.
SCALES = {
    "sqrt_hd": lambda q, k: q.shape[-1] ** -0.5,
    "missing": lambda q, k: 1.0,
    "rounded_down": lambda q, k: 1 / math.floor(q.shape[-1] ** 0.5),
    "rounded": lambda q, k: 1 / round(q.shape[-1] ** 0.5),
    "rounded_up": lambda q, k: 1 / math.ceil(q.shape[-1] ** 0.5),
    "hd": lambda q, k: 1 / q.shape[-1],
    "times_sqrt_hd": lambda q, k: q.shape[-1] ** 0.5,
    "sqrt_c": lambda q, k: (q.shape[-1] * (q.shape[-3] if q.dim() > 3 else 1)) ** -0.5,
    "sqrt_c_or_1": lambda q, k: (q.shape[-1] * (q.shape[-3] if q.dim() > 2 else 1)) ** -0.5,
    "sqrt_c_strict": lambda q, k: (q.shape[-1] * q.shape[-3]) ** -0.5,
    "sqrt_c_axis_1": lambda q, k: (q.shape[-1] * q.shape[1]) ** -0.5,
    "sqrt_heads": lambda q, k: (q.shape[-3] if q.dim() > 3 else 1) ** -0.5,
    "sqrt_heads_or_1": lambda q, k: (q.shape[-3] if q.dim() > 2 else 1) ** -0.5,
    "sqrt_heads_strict": lambda q, k: q.shape[-3] ** -0.5,
    "sqrt_axis_1": lambda q, k: q.shape[1] ** -0.5,
    "sqrt_axis_0": lambda q, k: q.shape[0] ** -0.5,
    "sqrt_queries": lambda q, k: q.shape[-2] ** -0.5,
    "sqrt_keys": lambda q, k: k.shape[-2] ** -0.5,
}
SCALES |= {way: lambda q, k, way=way: PRECEDENCE[way](q.shape[-1], None, None) for way in PRECEDENCE_OF_HD}

# How the scores are normalised. A number is the axis of a softmax.
SHARES = {
    "detached_sum": lambda s: (s - s.logsumexp(-1, keepdim=True).detach()).exp(),
    "implicit": lambda s: torch.softmax(s, dim=0 if s.dim() == 3 else 1),  # F.softmax without dim
    "table": lambda s: torch.softmax(s.flatten(-2), dim=-1).view(s.shape),
    "all": lambda s: torch.softmax(s.flatten(), dim=0).view(s.shape),
    "missing": lambda s: s + 0.0,
    "uniform": lambda s: torch.softmax(s * 0.0, dim=-1),
    "sum": lambda s: s / s.sum(-1, keepdim=True),
    "exp": lambda s: s.exp(),
    "exp_shifted": lambda s: (s - s.amax(-1, keepdim=True)).exp(),
    "queries_by_hand": lambda s: (e := (s - s.amax(-1, keepdim=True)).exp()) / e.sum(-2, keepdim=True),
    "sum_abs": lambda s: s / s.abs().sum(-1, keepdim=True),
    "abs_sum": lambda s: s.abs() / s.abs().sum(-1, keepdim=True),
    "sum_queries": lambda s: s / s.sum(-2, keepdim=True),
    "sum_table": lambda s: s / s.sum((-2, -1), keepdim=True),
    "sum_all": lambda s: s / s.sum(),
    "sum_axis_1": lambda s: s / s.sum(1, keepdim=True),
    "sum_axis_0": lambda s: s / s.sum(0, keepdim=True),
}
SUMS = ("sum_abs", "abs_sum", "sum_queries", "sum_table", "sum_all", "sum_axis_1", "sum_axis_0")

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

ANSWERS = {
    "tuple": lambda out: (out, out),
    "list": lambda out: [out],
    "numpy": lambda out: out.detach().cpu().numpy(),
    "none": lambda out: None,
}

FUNCTIONS = ("simplified_attention", "attention_scores", "attention_weights", "attend")


def unpacked(t, axes):
    """`B, T, C = t.shape`: any other number of axes is a ValueError."""
    if t.dim() != axes:
        raise ValueError(f"not enough values to unpack (expected {axes}, got {t.dim()})")
    return t


def only_size(out, kind, n):
    """The output of an attempt that was written for one size of an axis."""
    if kind == "view":
        return out.view(2, n, -1, n)
    rows = torch.zeros_like(out)
    for i in range(n):
        if kind == "tokens":
            rows[..., i, :] = out[..., i, :]
        else:
            rows[i] = out[i]
    return rows


def make(
    *,
    scale="sqrt_hd",  # of attention_scores, and of attend where scale_attend does not say otherwise
    scale_attend=None,  # "sqrt_values": by the root of the values' width
    scores_rounded="no",
    decimals=(),  # (function, decimals): what it returns is rounded
    scale_simplified=1.0,
    scale_again=None,  # attend scales q, then calls attention_scores
    scale_after="nothing",  # "attend": attend divides the weights by √hd; "weights": attention_weights does, by √T_k
    softmax=-1,  # of all three, where the following do not say otherwise
    softmax_simplified=None,
    softmax_weights=None,
    softmax_attend=None,
    product="any",
    product_simplified=None,
    product_attend=None,
    roles="qkv",  # of attend
    swapped=False,  # attention_scores gives k qᵀ
    size=None,  # (kind, n): only_size
    size_in=FUNCTIONS,
    cut=(),  # names of tensors that lose their past
    mutate=(),  # names of tensors that are written into
    cast=None,  # a dtype that stays fixed, in all functions
    cast_in=None,  # (dtype, functions)
    fixed_device=(),  # functions that make a tensor on the CPU
    to_cpu=(),  # functions that take their arguments there
    returns=None,  # (kind, function): it returns something that is no tensor
    without="",  # a function that is missing
    renamed="",  # a function whose arguments have other names
):
    """The exercise's names, with these faults; the defaults are right."""

    def lose(name, t):
        return t.detach() if name in cut else t

    def rounded(name, t):
        return t.round(decimals=decimals[1]) if decimals and decimals[0] == name else t

    def raw(kind, q, k):
        if swapped:
            q, k = k, q
        return PRODUCTS[kind](lose("q", q), lose("k", k))

    def scaled(kind, how, q, k):
        factor = SCALES[how](q, k) if isinstance(how, str) else how
        return lose("scores", ROUNDED_SCORES[scores_rounded](raw(kind, q, k) * factor))

    def shares(kind, scores):
        scores = lose("scores", scores)
        weights = torch.softmax(scores, dim=kind) if isinstance(kind, int) else SHARES[kind](scores)
        return lose("weights", weights / math.sqrt(scores.shape[-1]) if scale_after == "weights" else weights)

    def simplified_attention(x):
        if "x" in mutate:
            x.mul_(1.5)
            return simplified(x / 1.5)
        return simplified(x)

    def simplified(x):
        kind = product if product_simplified is None else product_simplified
        how = softmax if softmax_simplified is None else softmax_simplified
        factor = x.shape[-1] ** -0.5 if scale_simplified == "sqrt_c" else scale_simplified
        table = PRODUCTS[kind](lose("x_query", x), lose("x_keys", x)) * factor
        weights = torch.softmax(table, dim=how) if isinstance(how, int) else SHARES[how](table)
        return lose("x_weights", weights) @ lose("x_values", x)

    def attention_scores(q, k):
        for name, t in (("q", q), ("k", k)):
            if name in mutate:
                t.mul_(2.0)
        done = (2.0 if "q" in mutate else 1.0) * (2.0 if "k" in mutate else 1.0)
        return scaled(product, scale, q, k) / done

    def attention_weights(scores):
        if "scores" in mutate:
            scores -= scores.amax(-1, keepdim=True)
        kind = softmax if softmax_weights is None else softmax_weights
        return shares(kind, scores)

    def attend(q, k, v):
        q, k, v = ((q, k, v)[i] for i in ROLES[roles])
        kind = product if product_attend is None else product_attend
        how = scale if scale_attend is None else scale_attend
        scores = scaled(kind, v.shape[-1] ** -0.5 if how == "sqrt_values" else how, q, k)
        scores = rounded("attention_scores", scores)
        if scale_again is not None:
            scores = scores * SCALES[scale_again](q, k)
        inherited = softmax if softmax_weights is None else softmax_weights
        weights = shares(inherited if softmax_attend is None else softmax_attend, scores)
        if scale_after == "attend":
            weights = weights * SCALES["sqrt_hd"](q, k)
        if "v" in mutate:
            v.add_(1.0)
            v = v - 1.0
        return rounded("attention_weights", weights) @ lose("v", v)

    right = dict(zip(FUNCTIONS, (simplified_attention, attention_scores, attention_weights, attend), strict=True))

    def dressed(name):
        """The function with the faults that any function can have."""

        def run(*args):
            fixed = cast or (cast_in and name in cast_in[1] and cast_in[0])
            if fixed:
                args = [a.to(getattr(torch, fixed)) for a in args]
            if name in fixed_device:
                args = [a + torch.zeros(a.shape, dtype=a.dtype) for a in args]
            if name in to_cpu:
                args = [a.cpu() for a in args]
            out = right[name](*args)
            out = rounded(name, out)
            if size and name in size_in:
                out = only_size(out, *size)
            return ANSWERS[returns[0]](out) if returns and name == returns[1] else lose("out", out)

        return run

    return {name: _with_names(dressed(name), name, renamed) for name in FUNCTIONS if name != without}


def _with_names(run, name, renamed):
    if name == renamed:
        return lambda *args: run(*args)
    return {
        "simplified_attention": lambda x: run(x),
        "attention_scores": lambda q, k: run(q, k),
        "attention_weights": lambda scores: run(scores),
        "attend": lambda q, k, v: run(q, k, v),
    }[name]


def _scales(id_, how):
    """In both functions, in attend alone, in attention_scores alone."""
    yield id_, {"scale": how}
    yield id_, {"scale_attend": how}
    yield id_, {"scale": how, "scale_attend": "sqrt_hd"}


def _shares(id_, how):
    """Everywhere, in the pair of functions, and in each function alone."""
    yield id_, {"softmax": how}
    yield id_, {"softmax_simplified": how}
    yield id_, {"softmax_weights": how}
    yield id_, {"softmax_attend": how}
    yield id_, {"softmax_weights": how, "softmax_attend": -1}


def _each(id_, knob, *values):
    for value in values:
        yield id_, {knob: value}


CONSTANTS = (8, 64, 2, 4, 768)

MUTANTS = (
    *_scales("scale_missing", "missing"),
    *_scales("scale_no_sqrt", "hd"),
    *_scales("scale_multiplied", "times_sqrt_hd"),
    *_shares("softmax_query_axis", -2),
    *_shares("softmax_query_axis", "queries_by_hand"),
    *_shares("softmax_query_axis", 1),
    *_shares("softmax_wrong_axis", 0),
    *_shares("scores_ignored", "uniform"),
    *_shares("softmax_missing", "missing"),
    *_shares("softmax_missing", "sum"),
    *_shares("softmax_wrong_axis", "table"),
    *_shares("softmax_wrong_axis", "all"),
    *_each("softmax_query_axis", "softmax", 2),
    *_each("softmax_wrong_axis", "softmax", "implicit", -3, 1, 2),
    *_each("softmax_query_axis", "softmax", 0),
    *_each("softmax_wrong_axis", "softmax_simplified", "implicit", 1),
    *_each("softmax_wrong_axis", "softmax_weights", "implicit", -3, 1),
    *_each("softmax_missing", "softmax", *SUMS, "exp", "exp_shifted"),
    *_each("softmax_missing", "softmax_weights", "exp", "exp_shifted"),
    *_each("softmax_missing", "softmax_simplified", "exp", "exp_shifted"),
    *_each("softmax_missing", "softmax_weights", *SUMS),
    *_each("softmax_missing", "softmax_simplified", "sum_abs", "sum_all"),
    *_each("values_wrong_source", "roles", "qkk", "qkq"),
    ("scale_after_softmax", {"scale": "missing", "scale_after": "attend"}),
    ("scale_after_softmax", {"scale_attend": "missing", "scale_after": "attend"}),
    ("scale_after_softmax", {"scale_after": "attend"}),
    ("scale_after_softmax", {"scale": "missing", "scale_after": "weights"}),
    ("scale_after_softmax", {"scale_after": "weights"}),
    ("scale_twice", {"scale_again": "sqrt_hd"}),
    ("scale_twice", {"scale": "hd"}),
    ("scale_twice", {"scale": "hd", "scale_attend": "sqrt_hd"}),
    *(mutant for way in PRECEDENCE_OF_HD for mutant in _scales("scale_precedence", way)),
    *_scales("scale_sqrt_tokens", "sqrt_keys"),
    *_scales("scale_sqrt_tokens", "sqrt_queries"),
    *_each(
        "scale_wrong_axis", "scale", "sqrt_heads", "sqrt_heads_or_1", "sqrt_heads_strict", "sqrt_axis_1", "sqrt_axis_0"
    ),
    *_each("scale_wrong_axis", "scale", "sqrt_axis_0"),
    *_each("scale_wrong_axis", "scale_attend", "sqrt_values"),
    *(mutant for root in ("rounded_down", "rounded", "rounded_up") for mutant in _scales("scale_rounded", root)),
    *_each("scale_rounded", "scores_rounded", *tuple(ROUNDED_SCORES)[1:]),
    *_each("output_rounded", "decimals", *((name, n) for name in FUNCTIONS for n in (4, 3, 2))),
    *_each("scale_sqrt_tokens", "scale", "sqrt_axis_1"),
    *_each("scale_sqrt_c", "scale", "sqrt_c", "sqrt_c_or_1", "sqrt_c_strict", "sqrt_c_axis_1"),
    *_each("scale_constant", "scale", *(n**-0.5 for n in CONSTANTS)),
    *_each("scale_constant", "scale_attend", *(n**-0.5 for n in CONSTANTS[:4])),
    *_each("qkv_order", "roles", "kqv", "qvk", "vkq", "kvq", "vqk"),
    ("qkv_order", {"swapped": True}),
    ("axes_turned", {"product": "T"}),
    *_each("hard_coded_shape", "product", *tuple(PRODUCTS)[2:]),
    ("axes_turned", {"product_simplified": "T"}),
    *_each("hard_coded_shape", "product_simplified", "t", "mm", "transpose_01", "transpose_12", "bmm", "unpack_3"),
    *_each(
        "hard_coded_shape", "size", *(("tokens", n) for n in (6, 4, 3, 2, 8)), ("batch", 2), ("batch", 1), ("view", 64)
    ),
    ("hard_coded_shape", {"size": ("view", 64), "size_in": ("simplified_attention",)}),
    ("hard_coded_shape", {"size": ("tokens", 6), "size_in": ("simplified_attention",)}),
    *_each("gradient_cut", "cut", *((name,) for name in ("x_weights", "x_keys", "x_query", "x_values"))),
    *_each("gradient_cut", "cut", *((name,) for name in ("q", "k", "v", "scores", "weights", "out"))),
    *(("gradient_cut", {knob: "detached_sum"}) for knob in ("softmax", "softmax_weights", "softmax_simplified")),
    *_each("input_mutated", "mutate", *((name,) for name in ("q", "k", "v", "x", "scores"))),
    *_each("hard_coded_dtype", "cast", "float32", "float64"),
    *_each("hard_coded_dtype", "cast_in", *(("float32", (name,)) for name in FUNCTIONS)),
    *_each("hard_coded_device", "fixed_device", *((name,) for name in FUNCTIONS)),
    *_each("hard_coded_device", "to_cpu", *((name,) for name in FUNCTIONS)),
    *_each("interface", "returns", *((kind, "attend") for kind in ("tuple", "list", "none", "numpy"))),
    *_each("interface", "returns", *(("tuple", name) for name in FUNCTIONS[:3])),
    *_each("interface", "without", "simplified_attention", "attend"),
    *_each("interface", "renamed", "attend"),
    KEYS_NOT_TRANSPOSED,
)

# With a number that nobody can list.
FAMILIES = (
    ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
    ("scale_constant", lambda c: {"scale_attend": c}, SCALES_TRIED),
)
