"""Wrong attempts at the attention scores: one implementation whose knobs turn one fault each."""

import math

import torch

# What q kᵀ is multiplied by, for each way to get the scale wrong. A number stands for itself.
SCALES = {
    "sqrt_hd": lambda q, k: q.shape[-1] ** -0.5,
    "missing": lambda q, k: 1.0,
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

# How the scores are normalised. A number is the axis of a softmax.
SHARES = {
    "implicit": lambda s: torch.softmax(s, dim=0 if s.dim() == 3 else 1),  # F.softmax without dim
    "table": lambda s: torch.softmax(s.flatten(-2), dim=-1).view(s.shape),
    "all": lambda s: torch.softmax(s.flatten(), dim=0).view(s.shape),
    "missing": lambda s: s + 0.0,
    "sum": lambda s: s / s.sum(-1, keepdim=True),
    "sum_abs": lambda s: s / s.abs().sum(-1, keepdim=True),
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
ROLES = {name: tuple("qkv".index(c) for c in name) for name in ("qkv", "qvk", "kqv", "kvq", "vqk", "vkq", "qkk", "qkq")}

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
    scale_attend=None,
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
    cast=None,  # a dtype that stays fixed
    cast_in=FUNCTIONS,
    fixed_device=(),  # functions that make a tensor on the CPU
    returns=None,  # "tuple" or "list" or "numpy"
    returns_in=("attend",),
    without=(),  # functions that are missing
    renamed=(),  # functions whose arguments have other names
):
    """The exercise's names, with these faults; the defaults are right."""

    def lose(name, t):
        return t.detach() if name in cut else t

    def raw(kind, q, k):
        if swapped:
            q, k = k, q
        return PRODUCTS[kind](lose("q", q), lose("k", k))

    def scaled(kind, how, q, k):
        factor = SCALES[how](q, k) if isinstance(how, str) else how
        return lose("scores", raw(kind, q, k) * factor)

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
        scores = scaled(kind, scale if scale_attend is None else scale_attend, q, k)
        if scale_again is not None:
            scores = scores * SCALES[scale_again](q, k)
        inherited = softmax if softmax_weights is None else softmax_weights
        weights = shares(inherited if softmax_attend is None else softmax_attend, scores)
        if scale_after == "attend":
            weights = weights * SCALES["sqrt_hd"](q, k)
        if "v" in mutate:
            v.add_(1.0)
            v = v - 1.0
        return weights @ lose("v", v)

    right = dict(zip(FUNCTIONS, (simplified_attention, attention_scores, attention_weights, attend), strict=True))

    def dressed(name):
        """The function with the faults that any function can have."""

        def run(*args):
            if cast and name in cast_in:
                args = [a.to(getattr(torch, cast)) for a in args]
            if name in fixed_device:
                args = [a + torch.zeros(a.shape, dtype=a.dtype) for a in args]
            out = right[name](*args)
            if size and name in size_in:
                out = only_size(out, *size)
            out = lose(f"out_{name}", out)
            if returns and name in returns_in:
                return {"tuple": (out, out), "list": [out], "numpy": out.detach().cpu().numpy(), "none": None}[returns]
            return out

        return run

    return {name: _with_names(dressed(name), name, renamed) for name in FUNCTIONS if name not in without}


def _with_names(run, name, renamed):
    if name in renamed:
        return lambda *args: run(*args)
    return {
        "simplified_attention": lambda x: run(x),
        "attention_scores": lambda q, k: run(q, k),
        "attention_weights": lambda scores: run(scores),
        "attend": lambda q, k, v: run(q, k, v),
    }[name]


def _scales(id_, how):
    """In both functions, in attention_scores alone, in attend alone."""
    yield id_, {"scale": how}
    yield id_, {"scale_attend": how}
    yield id_, {"scale": how, "scale_attend": "sqrt_hd"}


def _shares(id_, how):
    """Everywhere, in the pair of functions, and in each alone."""
    yield id_, {"softmax": how}
    yield id_, {"softmax_simplified": how}
    yield id_, {"softmax_weights": how}
    yield id_, {"softmax_attend": how}
    yield id_, {"softmax_weights": how, "softmax_attend": -1}


def _products(id_, how):
    yield id_, {"product": how}
    yield id_, {"product_simplified": how}
    yield id_, {"product_attend": how}
    yield id_, {"product": how, "product_simplified": "any"}


CONSTANTS = (8, 64, 2, 4, 64**-0.5, 0.5, 1 / 64, 16, 32, 128, 512, 768, 3, 6, 10, 100, 0.1, 0.25, 1 / 3, 1 / 6)

MUTANTS = (
    *_scales("scale_missing", "missing"),
    *_scales("scale_no_sqrt", "hd"),
    *_scales("scale_multiplied", "times_sqrt_hd"),
    *_shares("softmax_query_axis", -2),
    *_shares("softmax_query_axis", 1),
    *_shares("softmax_wrong_axis", 0),
    *_shares("softmax_wrong_axis", 1),
    *_shares("softmax_missing", "missing"),
    *_shares("softmax_missing", "sum"),
    *_shares("softmax_wrong_axis", "table"),
    *_shares("softmax_wrong_axis", "all"),
    *_shares("softmax_wrong_axis", "implicit"),
    *_shares("softmax_wrong_axis", -3),
    *_shares("softmax_query_axis", 2),
    *_shares("softmax_wrong_axis", 2),
    *_shares("softmax_query_axis", 0),
    *(
        ("softmax_missing", knobs)
        for how in ("sum_abs", "abs_sum", "sum_queries", "sum_table", "sum_all", "sum_axis_1", "sum_axis_0")
        for _, knobs in _shares("", how)
    ),
    ("values_wrong_source", {"roles": "qkk"}),
    ("values_wrong_source", {"roles": "qkq"}),
    ("scale_after_softmax", {"scale": "missing", "scale_after": "attend"}),
    ("scale_after_softmax", {"scale_attend": "missing", "scale_after": "attend"}),
    ("scale_after_softmax", {"scale_after": "attend"}),
    ("scale_after_softmax", {"scale": "missing", "scale_after": "weights"}),
    ("scale_after_softmax", {"scale_after": "weights"}),
    ("scale_twice", {"scale_again": "sqrt_hd"}),
    ("scale_twice", {"scale": "hd"}),
    ("scale_twice", {"scale": "hd", "scale_attend": "sqrt_hd"}),
    *_scales("scale_sqrt_tokens", "sqrt_keys"),
    *_scales("scale_sqrt_tokens", "sqrt_queries"),
    *_scales("scale_sqrt_heads", "sqrt_heads"),
    *_scales("scale_sqrt_heads", "sqrt_heads_or_1"),
    *_scales("scale_sqrt_heads", "sqrt_heads_strict"),
    *_scales("scale_sqrt_heads", "sqrt_axis_1"),
    *_scales("scale_sqrt_tokens", "sqrt_axis_1"),
    *_scales("scale_sqrt_heads", "sqrt_axis_0"),
    *_scales("scale_sqrt_c", "sqrt_c"),
    *_scales("scale_sqrt_c", "sqrt_c_or_1"),
    *_scales("scale_sqrt_c", "sqrt_c_strict"),
    *_scales("scale_sqrt_c", "sqrt_c_axis_1"),
    *(mutant for n in CONSTANTS for mutant in _scales("scale_constant", n**-0.5)),
    *(("qkv_order", {"roles": roles}) for roles in ("kqv", "qvk", "vkq", "kvq", "vqk")),
    ("qkv_order", {"swapped": True}),
    *(mutant for how in tuple(PRODUCTS)[1:] for mutant in _products("hard_coded_shape", how)),
    *(("hard_coded_shape", {"size": ("tokens", n)}) for n in (6, 4, 3, 2, 8)),
    *(("hard_coded_shape", {"size": ("tokens", 6), "size_in": (name,)}) for name in FUNCTIONS),
    *(("hard_coded_shape", {"size": ("batch", n)}) for n in (2, 1, 4, 8)),
    *(("hard_coded_shape", {"size": ("batch", 2), "size_in": (name,)}) for name in FUNCTIONS),
    ("hard_coded_shape", {"size": ("view", 64)}),
    *(("hard_coded_shape", {"size": ("view", 64), "size_in": (name,)}) for name in FUNCTIONS),
    *(
        ("gradient_cut", {"cut": (name,)})
        for name in ("x_weights", "x_keys", "x_query", "x_values", "weights", "scores")
    ),
    *(("gradient_cut", {"cut": (name,)}) for name in ("q", "k", "v")),
    *(("gradient_cut", {"cut": (f"out_{name}",)}) for name in FUNCTIONS),
    ("gradient_cut", {"cut": tuple(f"out_{name}" for name in FUNCTIONS)}),
    *(("input_mutated", {"mutate": (name,)}) for name in ("q", "k", "v", "x", "scores")),
    *(("hard_coded_dtype", {"cast": cast}) for cast in ("float32", "float64", "float16", "bfloat16")),
    *(("hard_coded_dtype", {"cast": "float32", "cast_in": (name,)}) for name in FUNCTIONS),
    *(("hard_coded_device", {"fixed_device": (name,)}) for name in FUNCTIONS),
    *(("interface", {"returns": kind}) for kind in ("tuple", "list", "none")),
    *(
        ("interface", {"returns": kind, "returns_in": (name,)})
        for kind in ("tuple", "none", "numpy")
        for name in FUNCTIONS
    ),
    *(("interface", {"without": (name,)}) for name in FUNCTIONS),
    *(("interface", {"renamed": (name,)}) for name in FUNCTIONS),
)
