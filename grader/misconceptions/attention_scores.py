"""Wrong attempts at the attention scores: one implementation whose knobs turn one fault each."""

import math

import torch

from ._masking import KEYS_NOT_TRANSPOSED, PRECEDENCE_OF_HD, ROUNDED_SCORES, SCALES_TRIED, each
from ._scores import ANSWERS, CONSTANTS, PRODUCTS, ROLES, SCALES, SHARES, multiplier

SUMS = ("sum_abs", "abs_sum", "sum_queries", "sum_table", "sum_all", "sum_axis_1", "sum_axis_0")

ANSWERS = ANSWERS | {"list": lambda out: [out]}

FUNCTIONS = ("simplified_attention", "attention_scores", "attention_weights", "attend")


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

    def scaled(kind, how, q, k, v=None):
        return lose("scores", ROUNDED_SCORES[scores_rounded](raw(kind, q, k) * multiplier(how, q, k, v)))

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
        scores = scaled(kind, how, q, k, v)
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
    *each("softmax_query_axis", "softmax", 2),
    *each("softmax_wrong_axis", "softmax", "implicit", -3, 1, 2),
    *each("softmax_query_axis", "softmax", 0),
    *each("softmax_wrong_axis", "softmax_simplified", "implicit", 1),
    *each("softmax_wrong_axis", "softmax_weights", "implicit", -3, 1),
    *each("softmax_missing", "softmax", *SUMS, "exp", "exp_shifted"),
    *each("softmax_missing", "softmax_weights", "exp", "exp_shifted"),
    *each("softmax_missing", "softmax_simplified", "exp", "exp_shifted"),
    *each("softmax_missing", "softmax_weights", *SUMS),
    *each("softmax_missing", "softmax_simplified", "sum_abs", "sum_all"),
    *each("values_wrong_source", "roles", "qkk", "qkq"),
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
    *each(
        "scale_wrong_axis", "scale", "sqrt_heads", "sqrt_heads_or_1", "sqrt_heads_strict", "sqrt_axis_1", "sqrt_axis_0"
    ),
    *each("scale_wrong_axis", "scale", "sqrt_axis_0"),
    *each("scale_wrong_axis", "scale_attend", "sqrt_values"),
    *(mutant for root in ("rounded_down", "rounded", "rounded_up") for mutant in _scales("scale_rounded", root)),
    *each("scale_rounded", "scores_rounded", *tuple(ROUNDED_SCORES)[1:]),
    *each("output_rounded", "decimals", *((name, n) for name in FUNCTIONS for n in (4, 3, 2))),
    *each("scale_sqrt_tokens", "scale", "sqrt_axis_1"),
    *each("scale_sqrt_c", "scale", "sqrt_c", "sqrt_c_or_1", "sqrt_c_strict", "sqrt_c_axis_1"),
    *each("scale_constant", "scale", *(n**-0.5 for n in CONSTANTS)),
    *each("scale_constant", "scale_attend", *(n**-0.5 for n in CONSTANTS[:4])),
    *each("qkv_order", "roles", "kqv", "qvk", "vkq", "kvq", "vqk"),
    ("qkv_order", {"swapped": True}),
    ("axes_turned", {"product": "T"}),
    *each("hard_coded_shape", "product", *tuple(PRODUCTS)[2:]),
    ("axes_turned", {"product_simplified": "T"}),
    *each("hard_coded_shape", "product_simplified", "t", "mm", "transpose_01", "transpose_12", "bmm", "unpack_3"),
    *each(
        "hard_coded_shape", "size", *(("tokens", n) for n in (6, 4, 3, 2, 8)), ("batch", 2), ("batch", 1), ("view", 64)
    ),
    ("hard_coded_shape", {"size": ("view", 64), "size_in": ("simplified_attention",)}),
    ("hard_coded_shape", {"size": ("tokens", 6), "size_in": ("simplified_attention",)}),
    *each("gradient_cut", "cut", *((name,) for name in ("x_weights", "x_keys", "x_query", "x_values"))),
    *each("gradient_cut", "cut", *((name,) for name in ("q", "k", "v", "scores", "weights", "out"))),
    *(("gradient_cut", {knob: "detached_sum"}) for knob in ("softmax", "softmax_weights", "softmax_simplified")),
    *each("input_mutated", "mutate", *((name,) for name in ("q", "k", "v", "x", "scores"))),
    *each("hard_coded_dtype", "cast", "float32", "float64"),
    *each("hard_coded_dtype", "cast_in", *(("float32", (name,)) for name in FUNCTIONS)),
    *each("hard_coded_device", "fixed_device", *((name,) for name in FUNCTIONS)),
    *each("hard_coded_device", "to_cpu", *((name,) for name in FUNCTIONS)),
    *each("interface", "returns", *((kind, "attend") for kind in ("tuple", "list", "none", "numpy"))),
    *each("interface", "returns", *(("tuple", name) for name in FUNCTIONS[:3])),
    *each("interface", "without", "simplified_attention", "attend"),
    *each("interface", "renamed", "attend"),
    KEYS_NOT_TRANSPOSED,
)

# With a number that nobody can list.
FAMILIES = (
    ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
    ("scale_constant", lambda c: {"scale_attend": c}, SCALES_TRIED),
)
