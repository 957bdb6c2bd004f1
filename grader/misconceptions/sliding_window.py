"""Wrong attempts at the sliding window: one implementation whose knobs turn one fault each."""

import math
from functools import partial

import torch

from manyheads.checks import edit

from ._masking import INF, MASK_TYPES, hidden, weighed
from ._mutants import (
    FILLS_TRIED,
    LOW_FILLS,
    SCALES_TRIED,
    at,
    complete_knobs,
    mutants,
    values_transposed,
    variants,
)
from ._scaling import PRECEDENCE_OF_HD, scales
from ._scores import (
    CONSTANTS,
    OFFERED,
    PRODUCTS,
    ROLES,
    multiplier,
    of_both,
    offered,
    paired_defaults,
    sides,
)

# the keys that are not too far behind, and those not ahead, from (behind: query − key, window)
PAST = {
    "window": lambda behind, window: behind < window,
    "unlimited": lambda behind, window: behind == behind,
    "one_more": lambda behind, window: behind <= window,
    "one_less": lambda behind, window: behind < window - 1,
    "one_less_keeps_self": lambda behind, window: behind < max(window - 1, 1),
    "half": lambda behind, window: behind <= window // 2,
    "far": lambda behind, window: behind >= window,
    "farther": lambda behind, window: behind > window,
    "less_than_half": lambda behind, window: behind < max(window // 2, 1),
}
FUTURE = {
    "none": lambda behind, window: behind >= 0,
    "window": lambda behind, window: behind > -window,
    "window_and_one": lambda behind, window: behind >= -window,
    "half": lambda behind, window: behind >= -(window // 2),
    "one": lambda behind, window: behind >= -1,
    "two": lambda behind, window: behind >= -2,
    "three": lambda behind, window: behind >= -3,
    "all": lambda behind, window: behind == behind,
    "not_self": lambda behind, window: behind > 0,
}

# the position of query 0, from (queries, keys)
ALIGN = {
    "last": lambda T_q, T_k: T_k - T_q,
    "top_left": lambda T_q, T_k: 0,
    "one_early": lambda T_q, T_k: T_k - T_q - 1,
    "one_late": lambda T_q, T_k: T_k - T_q + 1,
    "reversed": lambda T_q, T_k: T_q - T_k,
    "at_end": lambda T_q, T_k: T_k - 1,
}

FUNCTIONS = ("window_mask", "local_attention")


def table(
    T_q,
    T_k,
    window,
    past,
    future,
    align,
    past_align,
    rows,
    mirrored,
    inverted,
    blocks,
    fixed,
    device,
):
    """Return which keys each query sees, (T_q, T_k), with these faults."""
    key = torch.arange(T_k if rows != "queries" else T_q, device=device)
    count = {"queries": T_q, "keys": T_k}.get(rows, T_q)
    start = 0 if rows in ("queries", "keys") else ALIGN[align](T_q, T_k)
    window, later = (
        fixed or window,
        ALIGN[past_align](T_q, T_k) - start if past_align != "as_align" else 0,
    )
    query = torch.arange(start, start + count, device=device)[:, None]
    behind = key - query if mirrored else query - key
    mask = PAST[past](behind + later, window) & FUTURE[future](behind, window)
    if blocks:
        mask = (query // window == key // window) & FUTURE[future](behind, window)
    return ~mask if inverted else mask


# Which keys each query sees, in both functions; with own_ before the name, in local_attention
# alone.
BANDS = {
    "past": "window",
    "future": "none",
    "align": "last",
    # a name of ALIGN, if the far past is cut off from another position
    "past_align": "as_align",
    "rows": "both",  # "queries", "keys": a square of that size
    "mirrored": False,
    "inverted": False,
    "blocks": False,
    "fixed": 0,  # a window that is written into the code
}
RIGHT = {
    **paired_defaults(BANDS),
    **OFFERED,
    "mask_type": None,
    # "window", "queries" or both: window_mask does not refuse these; "later": it fails further down
    "unchecked": (),
    "hide": -INF,  # a number to fill in, or a name of _masking.hidden
    "nan": "kept",  # "zero": a row that sees no key becomes zeros, as in SDPA
    "softmax": "keys",
    "scale": "sqrt_hd",
    "roles": "qkv",
    "product": "any",
}


def make(**knobs):
    """Return the exercise's names, with these faults."""
    faults = complete_knobs(knobs, RIGHT)
    both, its_own = of_both(faults, BANDS)

    def window_mask(T_q, T_k, window, device=None):
        if window < 1 and "window" not in faults.unchecked:
            raise ValueError(f"a window of {window}")
        if T_q > T_k and "later" in faults.unchecked:
            raise RuntimeError(f"start ({T_k - T_q}) must be within [0, {T_k}]")
        if T_q > T_k and "queries" not in faults.unchecked:
            raise ValueError(f"{T_q} queries and {T_k} keys")
        mask = table(
            T_q,
            T_k,
            window,
            **both,
            device="cpu" if "window_mask" in faults.fixed_device else device,
        )
        return MASK_TYPES[faults.mask_type](mask) if faults.mask_type else mask

    def local_attention(q, k, v, window):
        q, k, v = ((q, k, v)[i] for i in ROLES[faults.roles])
        mask = table(q.shape[-2], k.shape[-2], window, **its_own, device=q.device)
        scores, hide = (
            PRODUCTS[faults.product](q, k) * multiplier(faults.scale, q, k, v),
            faults.hide,
        )
        weights = weighed(hidden(scores, mask, hide), mask, hide, faults.softmax)
        return (weights.nan_to_num(0.0) if faults.nan == "zero" else weights) @ v

    functions = offered(faults, window_mask, local_attention)
    if faults.renamed == "window_mask":  # it takes no argument by name but the device
        functions["window_mask"] = lambda *args, **kwargs: window_mask(
            *args, **(kwargs and {"device": kwargs.get("device")})
        )
    return functions


_bands = partial(sides, defaults=BANDS)
# −1 added is a mask of ones: mask_added
WEAK = (-10.0, -1.0, -20.0, -5.0, -50.0, -30.0, -12.0)
OUT = "weights @ v"
SCALE = "/ math.sqrt(q.shape[-1])"
SCORES = f"q @ k.transpose(-2, -1) {SCALE}"
FINITE = ({"hide": -1e9}, {"nan": "zero"})  # a row that sees no key stays finite
SPLIT = (
    {"align": "top_left", "past_align": "last"},
    {"own_align": "top_left", "own_past_align": "last"},
)


MUTANTS = (
    *_bands("window_missing", past="unlimited"),
    *_bands("window_off_by_one", past=("one_more", "one_less", "one_less_keeps_self")),
    *(
        ("window_off_by_one", {knob: "one_less", **row})
        for knob in ("past", "own_past")
        for row in FINITE
    ),
    *_bands("window_two_sided", future="window"),
    *_bands("window_two_sided", past="one_more", future="window_and_one"),
    *_bands("window_two_sided", past="half", future="half"),
    *_bands("window_not_causal", future="all"),
    *_bands("mask_missing", past="unlimited", future="all"),
    *_bands("window_top_left", past=(..., "unlimited"), align="top_left"),
    *_bands("window_top_left", past_align="top_left"),
    *_bands("window_top_left", align="top_left", past_align="last"),
    *(("window_top_left", {**edges, **row}) for edges in SPLIT for row in FINITE),
    *_bands("window_misplaced", align=("one_early", "one_late", "reversed", "at_end")),
    *(
        ("window_misplaced", {knob: "one_early", **row})
        for knob in ("align", "own_align")
        for row in FINITE
    ),
    *_bands("window_square", past=(..., "unlimited"), rows=("queries", "keys")),
    *_bands("window_blocks", blocks=True, future=(..., "all")),
    *_bands("window_far_past", past=("far", "farther")),
    *(("window_far_past", {knob: "far", **row}) for knob in ("past", "own_past") for row in FINITE),
    *_bands("window_fixed", fixed=(3, 2, 4, 5, 8, 16, 32)),
    *_bands("mask_reversed", mirrored=True),
    *_bands("mask_reversed", inverted=True),
    *(("mask_reversed", {knob: True, "hide": -1e9}) for knob in ("inverted", "own_inverted")),
    *variants("mask_sdpa_inverted", nan="zero", own_inverted=True),
    *variants("mask_reversed", nan="zero", own_inverted=True),  # the same by hand
    *_bands("mask_excludes_self", future="not_self"),
    *(
        ("mask_excludes_self", {knob: "not_self", **row})
        for knob in ("future", "own_future")
        for row in FINITE
    ),
    *_bands("mask_peeks_one", future="one"),
    *_bands("mask_peeks_ahead", future=("two", "three")),
    ("mask_zero_fill", {"hide": 0.0}),
    *variants(
        "mask_weak_fill",
        hide=(*WEAK, *(("add", fill) for fill in WEAK if fill != -1.0), *LOW_FILLS),
    ),
    ("mask_plus_inf", {"hide": INF}),
    *variants("mask_high_fill", hide=(1e9, ("add", 1e9))),
    *variants("mask_after_softmax", hide="after_softmax"),
    *variants("mask_nan", hide=("nan_product", "nan_factor", math.nan, "after_softmax_inf")),
    *variants("mask_added", hide=("add_seen", "add_hidden")),
    *scales("missing", "hd"),
    ("scale_twice", {"scale": "hd"}),
    *scales("times_sqrt_hd", "times_hd", *PRECEDENCE_OF_HD),
    *mutants(
        "scale_after_softmax",
        edit(SCALE, "", {"return weights": f"return weights {SCALE}"}),
        edit("return weights", f"return weights {SCALE}"),
    ),
    *scales("sqrt_keys", "sqrt_tokens", "tokens"),
    ("scale_wrong_axis", {"scale": "sqrt_heads"}),
    *scales(
        "sqrt_axis_1",
        "sqrt_c",
        "sqrt_values",
        "sqrt_batch",
        "rounded_down",
        "rounded",
        "rounded_up",
    ),
    *at(
        SCORES,
        ("scale_rounded", f'torch.div({SCORES}, 1, rounding_mode="floor")', f"({SCORES}) // 1"),
    ),
    *variants("scale_constant", scale=[n**-0.5 for n in CONSTANTS]),
    *variants("softmax_query_axis", softmax=("queries", "queries_by_hand")),
    *variants("softmax_wrong_axis", softmax=("heads", "batch", "square", "everything")),
    *variants("softmax_query_axis", softmax="queries", hide=-1e9),
    *(
        ("softmax_wrong_axis", {"softmax": axis, **row})
        for row in FINITE
        for axis in ("heads", "batch")
    ),
    *variants("scores_ignored", scale=0.0),
    *variants(
        "softmax_missing",
        softmax=("missing", "missing_zero_filled", "sum", "sum_zero_filled", "exp", "sigmoid"),
    ),
    *variants("values_wrong_source", roles=("qkk", "qkq")),
    *variants("scores_wrong_source", roles=("qqv", "kkv", "qvv")),
    *variants("qkv_order", roles=("kqv", "qvk", "vkq", "kvq", "vqk")),
    *variants("output_rounded", decimals=[("local_attention", n) for n in (4, 3, 2)]),
    *variants(
        "argument_unchecked",
        unchecked=(("window",), ("queries",), ("window", "queries"), ("later",)),
    ),
    *variants("mask_not_bool", mask_type=tuple(MASK_TYPES)),
    ("axes_turned", {"product": "T"}),
    *variants(
        "hard_coded_shape", product=("transpose_12", "transpose_23", "bmm", "unpack_3", "unpack_4")
    ),
    ("gradient_cut", {"softmax": "detached_sum"}),
    *mutants("gradient_cut", edit("q @ k", "q.detach() @ k"), edit("q @ k", "q @ k.detach()")),
    *at(
        OUT,
        ("gradient_cut", "weights @ v.detach()", "(weights @ v).detach()", "weights.detach() @ v"),
    ),
    ("gradient_cut", edit("scores.masked_fill", "scores.detach().masked_fill")),
    *at(
        f"return {OUT}",
        ("input_mutated", *(f"out = {OUT}\n    {t}.mul_(2.0)\n    return out" for t in "qkv")),
    ),
    *variants(
        "hard_coded_dtype", cast=[(dtype, ("local_attention",)) for dtype in ("float32", "float64")]
    ),
    *variants("hard_coded_device", fixed_device=(*((name,) for name in FUNCTIONS), FUNCTIONS)),
    *variants(
        "interface",
        returns=[
            (return_type, name)
            for return_type in ("tuple", "list", "numpy", "none")
            for name in FUNCTIONS
        ],
    ),
    *variants("interface", without=FUNCTIONS),
    *variants("interface", renamed=FUNCTIONS),
    ("keys_not_transposed", edit("q @ k.transpose(-2, -1)", "q @ k")),
    values_transposed(),
    *_bands("window_halved", past=("half", "less_than_half")),
    (
        "values_width",
        edit(
            "return weights @ v",
            "out = torch.zeros_like(q)\n    out[:] = weights @ v\n    return out",
        ),
    ),
    ("hard_coded_dtype", edit("return weights @ v", "return weights.half().to(v) @ v")),
)

# parametric mutants: the number can have any value
FAMILIES = (
    ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
    ("mask_weak_fill", lambda c: {"hide": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": ("add", -c)}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": ("below", c)}, (0.02, 8.0)),
)
