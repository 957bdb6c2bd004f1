"""Wrong attempts at the sliding window: one implementation whose knobs turn one fault each."""

import math

import torch

from manyheads.checks import edit

from ._masking import (
    FILLS_TRIED,
    INF,
    LOW_FILLS,
    MASK_TYPES,
    PRECEDENCE_OF_HD,
    ROUNDED_SCORES,
    SCALES_TRIED,
    each,
    hidden,
    weighed,
)
from ._scores import ANSWERS, CONSTANTS, PRODUCTS, ROLES, multiplier

# Which keys are not too far behind, and which not ahead, from (behind: query − key, window).
PAST = {
    "window": lambda behind, window: behind < window,
    "unlimited": lambda behind, window: behind == behind,
    "one_more": lambda behind, window: behind <= window,
    "one_less": lambda behind, window: behind < window - 1,
    "one_less_keeps_self": lambda behind, window: behind < max(window - 1, 1),
    "half": lambda behind, window: behind <= window // 2,
    "less_than_half": lambda behind, window: behind < max(window // 2, 1),
}
FUTURE = {
    "none": lambda behind, window: behind >= 0,
    "window": lambda behind, window: behind > -window,
    "window_and_one": lambda behind, window: behind >= -window,
    "half": lambda behind, window: behind >= -(window // 2),
    "one": lambda behind, window: behind >= -1,
    "all": lambda behind, window: behind == behind,
    "not_self": lambda behind, window: behind > 0,
}

# At which position query 0 stands, (queries, keys).
ALIGN = {
    "last": lambda T_q, T_k: T_k - T_q,
    "top_left": lambda T_q, T_k: 0,
    "one_early": lambda T_q, T_k: T_k - T_q - 1,
    "one_late": lambda T_q, T_k: T_k - T_q + 1,
    "reversed": lambda T_q, T_k: T_q - T_k,
    "at_end": lambda T_q, T_k: T_k - 1,
}

FUNCTIONS = ("window_mask", "local_attention")


def table(T_q, T_k, window, past, future, align, past_align, rows, mirrored, inverted, blocks, fixed, device):
    """(T_q, T_k): who may see whom, with these faults."""
    key = torch.arange(T_k if rows != "queries" else T_q, device=device)
    count = {"queries": T_q, "keys": T_k}.get(rows, T_q)
    first = 0 if rows in ("queries", "keys") else ALIGN[align](T_q, T_k)
    window, later = fixed or window, ALIGN[past_align](T_q, T_k) - first if past_align != "as_align" else 0
    query = torch.arange(first, first + count, device=device)[:, None]
    behind = key - query if mirrored else query - key
    seen = PAST[past](behind + later, window) & FUTURE[future](behind, window)
    if blocks:
        seen = (query // window == key // window) & FUTURE[future](behind, window)
    return ~seen if inverted else seen


def make(
    *,
    past="window",  # of window_mask, and of local_attention where own_past does not say otherwise; so are the next ones
    own_past=None,
    future="none",
    own_future=None,
    align="last",
    own_align=None,
    past_align="as_align",  # where the query stands that the far past is cut off from, if elsewhere
    own_past_align=None,
    rows="both",  # "queries", "keys": a square of that size
    own_rows=None,
    mirrored=False,
    own_mirrored=None,
    inverted=False,
    own_inverted=None,
    blocks=False,
    own_blocks=None,
    fixed=0,  # a window that is written into the code
    own_fixed=None,
    mask_type=None,
    unchecked=(),  # "window", "queries", or both: what window_mask does not refuse; "later": it fails further down
    hide=-INF,  # a number to fill in, or a name of _masking.hidden
    true_hidden=False,  # local_attention fills where the mask is True
    nan="kept",  # "zero": a row that sees nobody becomes zeros, as SDPA has it
    softmax="keys",
    scale="sqrt_hd",
    scale_after=False,  # local_attention scales the weights
    scores_rounded="no",
    roles="qkv",
    product="any",
    decimals=None,
    cut=(),  # names of tensors that lose their past
    mutate=(),  # names of tensors that are written into
    cast=None,  # a dtype that stays fixed
    fixed_device=(),  # functions that make a tensor on the CPU, whatever is asked
    returns=None,  # (kind, function): it returns something that is no tensor
    without="",  # a function that is missing
    renamed="",  # a function whose arguments have other names
):
    """The exercise's names, with these faults; the defaults are right."""
    drawn = {"past": past, "future": future, "align": align, "rows": rows}
    drawn |= {"mirrored": mirrored, "inverted": inverted, "blocks": blocks, "past_align": past_align, "fixed": fixed}
    own = {"past": own_past, "future": own_future, "align": own_align, "rows": own_rows}
    own |= {"mirrored": own_mirrored, "inverted": own_inverted, "blocks": own_blocks}
    own |= {"past_align": own_past_align, "fixed": own_fixed}
    own = drawn | {name: value for name, value in own.items() if value is not None}

    def lose(name, t):
        return t.detach() if name in cut else t

    def answered(name, out):
        return ANSWERS[returns[0]](out) if returns and name == returns[1] else out

    def window_mask(T_q, T_k, window, device=None):
        if window < 1 and "window" not in unchecked:
            raise ValueError(f"a window of {window}")
        if T_q > T_k and "later" in unchecked:
            raise RuntimeError(f"start ({T_k - T_q}) must be within [0, {T_k}]")
        if T_q > T_k and "queries" not in unchecked:
            raise ValueError(f"{T_q} queries and {T_k} keys")
        seen = table(T_q, T_k, window, **drawn, device="cpu" if "window_mask" in fixed_device else device)
        return answered("window_mask", MASK_TYPES[mask_type](seen) if mask_type else seen)

    def local_attention(q, k, v, window):
        given = q, k, v
        if cast:
            q, k, v = (t.to(getattr(torch, cast)) for t in given)
        q, k, v = (lose(name, t) for name, t in zip("qkv", (q, k, v), strict=True))
        q, k, v = ((q, k, v)[i] for i in ROLES[roles])
        device = "cpu" if "local_attention" in fixed_device else q.device
        seen = table(q.shape[-2], k.shape[-2], window, **own, device=device)
        factor = multiplier(scale, q, k, v)
        scores = ROUNDED_SCORES[scores_rounded](PRODUCTS[product](q, k) * (1.0 if scale_after else factor))
        scores = lose("scores", scores)
        weights = weighed(hidden(scores, ~seen if true_hidden else seen, hide), seen, hide, softmax)
        weights = weights.nan_to_num(0.0) if nan == "zero" else weights
        out = lose("weights", weights * factor if scale_after else weights) @ v
        for name, t in zip("qkv", given, strict=True):
            if name in mutate:
                t.mul_(2.0)
        out = out if decimals is None else out.round(decimals=decimals)
        return answered("local_attention", lose("out", out))

    functions = {"window_mask": window_mask, "local_attention": local_attention}
    if renamed:
        right = functions[renamed]
        functions[renamed] = lambda *args, **kwargs: (
            right(*args, device=kwargs.get("device")) if kwargs else right(*args)
        )
    functions.pop(without, None)
    return functions


RIGHT = {"past": "window", "future": "none", "align": "last", "rows": "both"}
RIGHT |= {"mirrored": False, "inverted": False, "blocks": False, "past_align": "as_align", "fixed": 0}


def _bands(id_, **faults):
    """In both functions, in local_attention alone, in window_mask alone."""
    yield id_, faults
    yield id_, {f"own_{knob}": value for knob, value in faults.items()}
    yield id_, {**faults, **{f"own_{knob}": RIGHT[knob] for knob in faults}}


WEAK = (-10.0, -1.0, -20.0, -5.0, -50.0, -30.0, -12.0)
FINITE = ({"hide": -1e9}, {"nan": "zero"})  # what a row that sees nobody becomes
SPLIT = ({"align": "top_left", "past_align": "last"}, {"own_align": "top_left", "own_past_align": "last"})

MUTANTS = (
    *_bands("window_missing", past="unlimited"),
    *_bands("window_off_by_one", past="one_more"),
    *_bands("window_off_by_one", past="one_less"),
    *(("window_off_by_one", {knob: "one_less", **row}) for knob in ("past", "own_past") for row in FINITE),
    *_bands("window_off_by_one", past="one_less_keeps_self"),
    *_bands("window_two_sided", future="window"),
    *_bands("window_two_sided", past="one_more", future="window_and_one"),
    *_bands("window_two_sided", past="half", future="half"),
    *_bands("window_not_causal", future="all"),
    *_bands("mask_missing", past="unlimited", future="all"),
    *_bands("window_top_left", align="top_left"),
    *_bands("window_top_left", past="unlimited", align="top_left"),
    *(("window_top_left", {knob: "top_left", **row}) for knob in ("align", "own_align") for row in FINITE),
    *_bands("window_top_left", past_align="top_left"),
    *_bands("window_top_left", align="top_left", past_align="last"),
    *(("window_top_left", {**edges, **row}) for edges in SPLIT for row in FINITE),
    *_bands("window_misplaced", align="one_early"),
    *(("window_misplaced", {knob: "one_early", **row}) for knob in ("align", "own_align") for row in FINITE),
    *_bands("window_misplaced", align="one_late"),
    *_bands("window_misplaced", align="reversed"),
    *_bands("window_misplaced", align="at_end"),
    *_bands("window_square", rows="queries"),
    *_bands("window_square", rows="keys"),
    *_bands("window_square", rows="queries", past="unlimited"),
    *_bands("window_square", rows="keys", past="unlimited"),
    *_bands("window_blocks", blocks=True),
    *_bands("window_blocks", blocks=True, future="all"),
    *(m for window in (3, 2, 4, 5, 8, 16, 32) for m in _bands("window_fixed", fixed=window)),
    *_bands("mask_reversed", mirrored=True),
    *_bands("mask_reversed", inverted=True),
    *(("mask_reversed", {knob: True, "hide": -1e9}) for knob in ("inverted", "own_inverted")),
    *(("mask_reversed", {"true_hidden": True, **row}) for row in ({}, {"hide": -1e9})),
    *each("mask_sdpa_inverted", "nan", "zero", true_hidden=True),
    *each("mask_sdpa_inverted", "nan", "zero", own_inverted=True),
    *_bands("mask_excludes_self", future="not_self"),
    *(("mask_excludes_self", {knob: "not_self", **row}) for knob in ("future", "own_future") for row in FINITE),
    *_bands("mask_peeks_one", future="one"),
    *each("mask_zero_fill", "hide", 0.0, 1e-9, "multiply"),
    *each("mask_weak_fill", "hide", *WEAK, *(("add", fill) for fill in WEAK), *LOW_FILLS),
    *each("mask_plus_inf", "hide", INF, 1e9),
    *each("mask_after_softmax", "hide", "after_softmax"),
    *each("mask_nan", "hide", "nan_product", "nan_products", "nan_factor", math.nan),
    *each("mask_nan", "hide", "after_softmax_inf", "after_softmax_inf_and_sum", "after_softmax_nan_product"),
    *each("mask_added", "hide", "add_seen", "add_hidden", "subtract_seen", "subtract_hidden"),
    *each("mask_missing", "hide", "missing"),
    *each("scale_missing", "scale", "missing"),
    *each("scale_no_sqrt", "scale", "hd"),
    *each("scale_twice", "scale", "hd"),
    *each("scale_multiplied", "scale", "times_sqrt_hd"),
    *each("scale_precedence", "scale", *PRECEDENCE_OF_HD),
    ("scale_after_softmax", {"scale_after": True}),
    *each("scale_sqrt_tokens", "scale", "sqrt_keys", "sqrt_queries"),
    *each("scale_wrong_axis", "scale", "sqrt_heads", "sqrt_axis_1"),
    *each("scale_sqrt_c", "scale", "sqrt_c"),
    *each("scale_wrong_axis", "scale", "sqrt_values", "sqrt_axis_0"),
    *each("scale_rounded", "scale", "rounded_down", "rounded", "rounded_up"),
    *each("scale_rounded", "scores_rounded", *tuple(ROUNDED_SCORES)[1:]),
    *each("scale_constant", "scale", *(n**-0.5 for n in CONSTANTS)),
    *each("softmax_query_axis", "softmax", "queries", "queries_by_hand"),
    *each("softmax_wrong_axis", "softmax", "heads", "batch", "square", "everything"),
    *each("softmax_query_axis", "softmax", "queries", hide=-1e9),
    *each("softmax_wrong_axis", "softmax", "heads", "batch", hide=-1e9),
    *each("softmax_wrong_axis", "softmax", "heads", "batch", nan="zero"),
    *each("scores_ignored", "scale", "nothing"),
    *each("softmax_missing", "softmax", "missing", "missing_zero_filled", "sum", "sum_zero_filled", "exp", "sigmoid"),
    *each("values_wrong_source", "roles", "qkk", "qkq"),
    *each("qkv_order", "roles", "kqv", "qvk", "vkq", "kvq", "vqk"),
    *each("output_rounded", "decimals", 4, 3, 2),
    *each("argument_unchecked", "unchecked", ("window",), ("queries",), ("window", "queries"), ("later",)),
    *each("mask_not_bool", "mask_type", *MASK_TYPES),
    ("axes_turned", {"product": "T"}),
    *each("hard_coded_shape", "product", "transpose_12", "transpose_23", "bmm", "unpack_3", "unpack_4"),
    ("gradient_cut", {"softmax": "detached_sum"}),
    *each("gradient_cut", "cut", *((name,) for name in ("q", "k", "v", "scores", "weights", "out"))),
    *each("input_mutated", "mutate", ("q",), ("k",), ("v",)),
    *each("hard_coded_dtype", "cast", "float32", "float64"),
    *each("hard_coded_device", "fixed_device", *((name,) for name in FUNCTIONS), FUNCTIONS),
    *each("interface", "returns", *((kind, name) for kind in ANSWERS for name in FUNCTIONS)),
    *each("interface", "without", *FUNCTIONS),
    *each("interface", "renamed", *FUNCTIONS),
    ("keys_not_transposed", edit("q @ k.transpose(-2, -1)", "q @ k")),
    *_bands("window_halved", past="half"),
    *_bands("window_halved", past="less_than_half"),
    ("values_width", edit("return weights @ v", "out = torch.zeros_like(q)\n    out[:] = weights @ v\n    return out")),
    ("hard_coded_dtype", edit("return weights @ v", "return weights.half().to(v) @ v")),
)

# With a number that nobody can list.
FAMILIES = (
    ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
    ("mask_weak_fill", lambda c: {"hide": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": ("add", -c)}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": ("below", c)}, (0.02, 8.0)),
)
