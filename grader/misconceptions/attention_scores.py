"""Wrong attempts at the attention scores: one implementation whose knobs turn one fault each."""

import math
from functools import wraps

import torch

from manyheads.checks import edit

from ._mutants import (
    KEYS_NOT_TRANSPOSED,
    SCALES_TRIED,
    SCORES_WRONG_SOURCE,
    at,
    complete_knobs,
    mutants,
    values_transposed,
    variants,
)
from ._scaling import PRECEDENCE_OF_HD
from ._scores import CONSTANTS, OFFERED, PRODUCTS, ROLES, SHARES, multiplier, offered

SCORES = "q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])"
WEIGHTS, ATTEND = (
    "return torch.softmax(scores, dim=-1)",
    "return attention_weights(attention_scores(q, k)) @ v",
)
COPIED = {"attention_scores(q, k)) @ v": "attention_scores(q.clone(), k.clone())) @ v"}
APART = {ATTEND: "return torch.softmax(attention_scores(q, k), dim=-1) @ v"}
SUMS = (
    "sum_of_sizes",
    "abs_sum",
    "sum_queries",
    "sum_table",
    "sum_all",
    "sum_axis_1",
    "sum_axis_0",
)

FUNCTIONS = ("simplified_attention", "attention_scores", "attention_weights", "attend")


def only_size(out, axis, n):
    """Return the output of an attempt that was written for one size of an axis."""
    if axis == "view":
        return out.view(2, n, -1, n)
    rows = torch.zeros_like(out)
    for i in range(n):
        row = (..., i, slice(None)) if axis == "tokens" else i
        rows[row] = out[row]
    return rows


# If scale_attend, softmax_simplified or the like is None, the knob without this ending holds.
RIGHT = {
    **OFFERED,
    "scale": "sqrt_hd",
    "scale_attend": None,
    "scale_simplified": 1.0,
    # "attend": attend divides the weights by √hd; "weights": attention_weights does, by √T_k
    "scale_after": "nothing",
    "softmax": -1,
    "softmax_simplified": None,
    "softmax_weights": None,
    "softmax_attend": None,
    "product": "any",
    "product_simplified": None,
    "roles": "qkv",  # of attend
    "size": None,
    "size_in": FUNCTIONS,  # (kind, n): only_size
    "cut": (),
    "to_cpu": (),  # names of tensors, and functions
}


def make(**knobs):
    """Return the exercise's names, with these faults."""
    faults = complete_knobs(knobs, RIGHT)

    def lose(name, t):
        return t.detach() if name in faults.cut else t

    def rounded(name, t):
        return t.round(decimals=faults.decimals[1]) if name in faults.decimals else t

    def knob(name, suffix):
        override = getattr(faults, f"{name}_{suffix}")
        return getattr(faults, name) if override is None else override

    def scaled(product, how, q, k, v=None):
        return lose(
            "scores", PRODUCTS[product](lose("q", q), lose("k", k)) * multiplier(how, q, k, v)
        )

    def softmax(axis_or_name, scores):
        return (
            torch.softmax(scores, dim=axis_or_name)
            if isinstance(axis_or_name, int)
            else SHARES[axis_or_name](scores)
        )

    def shares(axis_or_name, scores):
        scores = lose("scores", scores)
        weights = softmax(axis_or_name, scores)
        return lose(
            "weights",
            weights / math.sqrt(scores.shape[-1]) if faults.scale_after == "weights" else weights,
        )

    def simplified_attention(x):
        table = PRODUCTS[knob("product", "simplified")](lose("x_query", x), lose("x_keys", x))
        table = table * multiplier(faults.scale_simplified, x, x)
        return lose("x_weights", softmax(knob("softmax", "simplified"), table)) @ lose(
            "x_values", x
        )

    def attention_scores(q, k):
        return scaled(faults.product, faults.scale, q, k)

    def attention_weights(scores):
        return shares(knob("softmax", "weights"), scores)

    def attend(q, k, v):
        q, k, v = ((q, k, v)[i] for i in ROLES[faults.roles])
        scores = rounded(
            "attention_scores", scaled(faults.product, knob("scale", "attend"), q, k, v)
        )
        how = knob("softmax", "weights") if faults.softmax_attend is None else faults.softmax_attend
        weights = shares(how, scores)
        if faults.scale_after == "attend":
            weights = weights * q.shape[-1] ** -0.5
        return rounded("attention_weights", weights) @ lose("v", v)

    def sized(function):
        def run(*args):
            out = function(*(a.cpu() if function.__name__ in faults.to_cpu else a for a in args))
            return (
                only_size(out, *faults.size)
                if faults.size and function.__name__ in faults.size_in
                else out
            )

        return wraps(function)(run)

    return offered(
        faults, *map(sized, (simplified_attention, attention_scores, attention_weights, attend))
    )


def _scales(id_, *scale_names):
    """In both functions, in attend alone, in attention_scores alone."""
    for how in scale_names:
        yield from ((id_, {"scale": how}), (id_, {"scale_attend": how}))
        yield id_, {"scale": how, "scale_attend": "sqrt_hd"}


def _shares(id_, *choices):
    """Everywhere, in the pair of functions, and in each function alone."""
    for how in choices:
        yield from (
            (id_, {f"softmax{suffix}": how})
            for suffix in ("", "_simplified", "_weights", "_attend")
        )
        yield id_, {"softmax_weights": how, "softmax_attend": -1}


MUTANTS = (
    *_scales("scale_missing", "missing"),
    *_scales("scale_no_sqrt", "hd"),
    *_scales("scale_multiplied", "times_sqrt_hd", "times_hd"),
    *variants("scale_not_due", scale_simplified=("sqrt_hd", "hd", "sqrt_tokens", "times_sqrt_hd")),
    *_shares("softmax_query_axis", -2, "queries_by_hand", 1),
    *_shares("softmax_wrong_axis", 0),
    *_shares("scores_ignored", "uniform"),
    *_shares("softmax_missing", "missing", "sum"),
    *_shares("softmax_wrong_axis", "square", "everything"),
    *variants("softmax_query_axis", softmax=2),
    *variants("softmax_wrong_axis", softmax=("implicit", -3, 1, 2)),
    *variants("softmax_wrong_axis", softmax_simplified=("implicit", 1)),
    *variants("softmax_wrong_axis", softmax_weights=("implicit", -3, 1)),
    *variants("softmax_missing", softmax=(*SUMS, "exp", "exp_shifted")),
    *variants("softmax_missing", softmax_weights=("exp", "exp_shifted", *SUMS)),
    *variants(
        "softmax_missing", softmax_simplified=("exp", "exp_shifted", "sum_of_sizes", "sum_all")
    ),
    *variants("values_wrong_source", roles=("qkk", "qkq")),
    *SCORES_WRONG_SOURCE[:2],
    *variants("scores_wrong_source", roles=("qqv", "kkv", "qvv")),
    *variants("scale_after_softmax", scale_after=("attend", "weights"), scale=("missing", ...)),
    ("scale_after_softmax", {"scale_attend": "missing", "scale_after": "attend"}),
    (
        "scale_twice",
        edit("attention_scores(q, k)) @ v", "attention_scores(q / math.sqrt(q.shape[-1]), k)) @ v"),
    ),
    *variants("scale_twice", scale="hd", scale_attend=(..., "sqrt_hd")),
    *_scales("scale_precedence", *PRECEDENCE_OF_HD),
    *_scales("scale_sqrt_tokens", "sqrt_keys", "sqrt_tokens"),
    *_scales("scale_tokens", "tokens"),
    *variants(
        "scale_wrong_axis",
        scale=[f"sqrt_{n}" for n in "heads heads_or_1 heads_strict axis_1 batch".split()],
    ),
    *variants("scale_wrong_axis", scale_attend="sqrt_values"),
    *_scales("scale_rounded", "rounded_down", "rounded", "rounded_up"),
    *at(
        SCORES,
        ("scale_rounded", f'torch.div({SCORES}, 1, rounding_mode="floor")', f"({SCORES}) // 1"),
    ),
    *variants("output_rounded", decimals=[(name, n) for name in FUNCTIONS for n in (4, 3, 2)]),
    *variants("scale_sqrt_tokens", scale="sqrt_axis_1"),
    *variants("scale_sqrt_c", scale=("sqrt_c", "sqrt_c_or_1", "sqrt_c_strict", "sqrt_c_axis_1")),
    *variants("scale_constant", scale=[n**-0.5 for n in CONSTANTS]),
    *variants("scale_constant", scale_attend=[n**-0.5 for n in CONSTANTS[:4]]),
    *variants("qkv_order", roles=("kqv", "qvk", "vkq", "kvq", "vqk")),
    ("qkv_order", edit("q @ k.transpose", "k @ q.transpose")),
    ("axes_turned", {"product": "T"}),
    *variants("hard_coded_shape", product=tuple(PRODUCTS)[2:]),
    ("axes_turned", {"product_simplified": "T"}),
    *variants(
        "hard_coded_shape",
        product_simplified=("t", "mm", "transpose_01", "transpose_12", "bmm", "unpack_3"),
    ),
    *variants(
        "hard_coded_shape",
        size=(*(("tokens", n) for n in (6, 4, 3, 2, 8)), ("batch", 2), ("batch", 1)),
    ),
    *variants("hard_coded_shape", size=[("view", 64)], size_in=[..., ("simplified_attention",)]),
    ("hard_coded_shape", {"size": ("tokens", 6), "size_in": ("simplified_attention",)}),
    *variants(
        "gradient_cut",
        cut=[(n,) for n in "x_weights x_keys x_query x_values q k v scores weights".split()],
    ),
    ("gradient_cut", {"detached": FUNCTIONS}),
    *(
        ("gradient_cut", {knob: "detached_sum"})
        for knob in ("softmax", "softmax_weights", "softmax_simplified")
    ),
    # Queries and keys in attention_scores alone.
    *mutants(
        "input_mutated",
        *(
            edit(f"return {SCORES}", f"{t}.mul_(2.0)\n    return {SCORES} / 2.0", COPIED)
            for t in "qk"
        ),
    ),
    ("input_mutated", edit(ATTEND, f"v.add_(1.0)\n    v = v - 1.0\n    {ATTEND}")),
    ("input_mutated", edit("weights = torch", "x.mul_(1.5)\n    x = x / 1.5\n    weights = torch")),
    (
        "input_mutated",
        edit(WEIGHTS, f"scores -= scores.amax(-1, keepdim=True)\n    {WEIGHTS}", APART),
    ),
    *variants("hard_coded_dtype", cast=[(dtype, FUNCTIONS) for dtype in ("float32", "float64")]),
    *variants("hard_coded_dtype", cast=[("float32", (name,)) for name in FUNCTIONS]),
    *(
        ("hard_coded_device", {knob: (name,)})
        for knob in ("fixed_device", "to_cpu")
        for name in FUNCTIONS
    ),
    *variants(
        "interface",
        returns=[(return_type, "attend") for return_type in ("tuple", "listed", "none", "numpy")],
    ),
    *variants("interface", returns=[("tuple", name) for name in FUNCTIONS[:3]]),
    *variants("interface", without=("simplified_attention", "attend")),
    *variants("interface", renamed="attend"),
    KEYS_NOT_TRANSPOSED,
    values_transposed("attention_weights(attention_scores(q, k)) @ v"),
)

# parametric mutants: the number can have any value
FAMILIES = tuple(
    ("scale_constant", lambda c, knob=knob: {knob: c}, SCALES_TRIED)
    for knob in ("scale", "scale_attend")
)
