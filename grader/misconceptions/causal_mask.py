"""Wrong attempts at the causal mask: one implementation whose knobs turn one fault each."""

import torch

from manyheads.checks import edit

from ._masking import INF, MASK_TYPES, VISIBLE, hidden, of_mask, visible, weighed
from ._mutants import FILLS_TRIED, LOW_FILLS, at, complete_knobs, mutants, variants
from ._scores import OFFERED, SHARES, of_both, offered, paired_defaults, sides

# More ways to hide scores, beside those of HIDE.
HIDES = {
    "subtract_hidden": lambda scores, mask: scores - ~mask.bool() * 1.0,
    "add_one_inf": lambda scores, mask: scores + mask.to(scores.dtype).masked_fill(~mask, -INF),
    "largest": lambda scores, mask: scores.masked_fill(~mask, torch.finfo(scores.dtype).max),
    "unsqueezed": lambda scores, mask: scores.masked_fill(~mask[None, None], -INF),
    "unsqueezed_once": lambda scores, mask: scores.masked_fill(~mask[None], -INF),
}

FUNCTIONS = ("causal_mask", "mask_scores", "causal_weights")


# In both functions; with own_ before the name, in causal_weights alone.
MASKED = {
    "mask": "causal",  # a name of VISIBLE; a number N is a mask of N tokens in every call
    "hide": -INF,  # as _masking.of_mask has it, or one of HIDES
}
RIGHT = {
    **paired_defaults(MASKED),
    **OFFERED,
    "mask_type": None,
    "mask_axes": 0,  # the number of axes of size 1 in front of the mask
    "nan": "kept",  # "zero": a row that sees no key becomes zeros
    "softmax": -1,
    "scale": None,  # causal_weights scales once more: "sqrt_tokens", or a number
    "mutate": (),  # "scores", "mask" or "weights": the tensors that are written into
}


def make(**knobs):
    """Return the exercise's names, with these faults."""
    faults = complete_knobs(knobs, RIGHT)
    both, its_own = of_both(faults, MASKED)

    def drawn(pattern, T, name, device):
        T, pattern = (pattern, "causal") if isinstance(pattern, int) else (T, pattern)
        device = "cpu" if name in faults.fixed_device else device
        return visible(pattern, T, device)

    def hide(method, scores, mask):
        """Return the hidden scores, the mask of the visible ones, and how the rest is hidden."""
        if method in HIDES:
            return HIDES[method](scores, mask), mask, None
        pattern, how = of_mask(method)
        mask = VISIBLE[pattern](mask)
        return hidden(scores, mask, how), mask, how

    def causal_mask(T, device=None):
        mask = drawn(both["mask"], T, "causal_mask", device)
        mask = MASK_TYPES[faults.mask_type](mask) if faults.mask_type else mask
        return mask[(None,) * faults.mask_axes]

    def mask_scores(scores, mask):
        out, *_ = hide(both["hide"], scores, mask)
        if "scores" in faults.mutate:
            scores.copy_(out.detach())
        if "mask" in faults.mutate:
            mask.logical_not_()
        return out

    def causal_weights(scores):
        T = scores.shape[-1]
        scaled = scores
        if faults.scale is not None:
            scaled = scores / (T**0.5 if faults.scale == "sqrt_tokens" else faults.scale)
        mask = drawn(its_own["mask"], T, "causal_weights", scores.device)
        weights = weighed(*hide(its_own["hide"], scaled, mask), faults.softmax, SHARES)
        if "weights" in faults.mutate:
            scores.masked_fill_(~mask, -INF)
        return weights.nan_to_num(0.0) if faults.nan == "zero" else weights

    functions = offered(faults, causal_mask, mask_scores, causal_weights)
    if faults.renamed == "swapped":
        functions["mask_scores"] = lambda mask, scores: mask_scores(scores, mask)
    return functions


def _masks(id_, *patterns):
    return sides(id_, MASKED, mask=patterns)


def _hides(id_, *methods):
    return sides(id_, MASKED, hide=methods)


HIDDEN = 'return scores.masked_fill(~mask, float("-inf"))'
UNPACKED = (
    'if scores.dim() != {axes}:\n        raise ValueError(f"not enough values to unpack (expected'
    ' {axes}, got {{scores.dim()}})")'
)
MASK = "mask = causal_mask(scores.shape[-1], device=scores.device)"
# −1 added is a mask of ones: mask_added
WEAK = (-10.0, -1.0, -20.0, -5.0, -50.0, -30.0, -11.0, -12.0, -13.0, -14.0)
# sizes of a mask that fits no other size, which is two mistakes at once
ONE_SIZE = (1024, 256, 64, 16, 8, 6, 4, 10, 12, 32, 128)
# faults that keep a row finite if it sees no key
EMPTY_ROWS = ({"nan": "zero"}, {"hide": -1e9}, {"hide": ("add", -1e9)})

MUTANTS = (
    *_masks("mask_missing", "all"),
    *_hides("mask_missing", "missing"),
    *_masks("mask_reversed", "inverted", "reversed"),
    *_hides("mask_reversed", "inverted"),
    ("mask_reversed", {"hide": ("inverted", -1e9)}),
    ("mask_reversed", {"own_hide": ("inverted", -1e9)}),
    ("mask_reversed", {"mask": "inverted", "hide": "inverted"}),
    *_masks("mask_excludes_self", "excludes_self", "excludes_self_but_first"),
    *(("mask_excludes_self", {"mask": "excludes_self", **empty_row}) for empty_row in EMPTY_ROWS),
    *(
        ("mask_excludes_self", {"own_mask": "excludes_self", **empty_row})
        for empty_row in EMPTY_ROWS
    ),
    *_masks("mask_peeks_one", "peeks_one"),
    *_masks("mask_peeks_ahead", "peeks_two", "peeks_three"),
    *_hides("mask_zero_fill", 0.0),
    *_hides(
        "mask_weak_fill", *WEAK, *(("add", fill) for fill in WEAK if fill != -1.0), *LOW_FILLS[:4]
    ),
    *_hides("mask_plus_inf", INF),
    *_hides("mask_high_fill", "largest", 1e9, ("add", 1e9)),
    *variants(
        "mask_after_softmax", own_hide=("after_softmax", "zero_twice", "after_softmax_whole_sum")
    ),
    *_hides("mask_nan", "nan_product", "nan_factor", ("inverted", "nan_product")),
    ("mask_nan", {"hide": float("nan")}),
    ("mask_after_softmax", {"own_hide": "after_softmax_inf"}),
    ("mask_nan", {"own_hide": "after_softmax_inf_and_sum"}),
    ("mask_after_softmax", {"own_hide": "after_softmax_inf_factor"}),
    ("mask_nan", {"own_hide": "after_softmax_inf_added"}),
    *_hides("mask_added", "add_seen", "add_hidden", "subtract_hidden"),
    *at(HIDDEN, ("mask_added", "return scores - mask * 1.0")),
    ("mask_added", {"hide": "add_one_inf", "own_hide": -INF}),
    *variants("softmax_query_axis", softmax=(-2, 1, 2, "queries_by_hand")),
    *variants("softmax_wrong_axis", softmax=(0, "square", "everything", "implicit", -3, 1, 2)),
    ("scores_ignored", {"scale": INF}),
    *variants(
        "softmax_missing", softmax=("missing", "missing_zero_filled", "sum", "sum_zero_filled")
    ),
    *variants(
        "softmax_missing",
        softmax=("sum_of_sizes_zero_filled", "sum_of_sizes", "sum_queries", "exp", "exp_shifted"),
    ),
    *variants("mask_not_sliced", own_mask=ONE_SIZE),
    *variants("hard_coded_shape", mask=(4, 6, 8, 3, 2, 5, 10, 16, 64, 1024)),
    *variants("hard_coded_shape", own_mask=ONE_SIZE),
    *(("hard_coded_shape", {"mask": n, "own_mask": "causal"}) for n in (4, 6, 8, 64, 1024)),
    *at("scores.shape[-1]", ("size_wrong_axis", "scores.shape[0]", "scores.shape[1]")),
    *at("scores.shape[-1]", ("hard_coded_shape", "scores.shape[2]", "scores.shape[3]")),
    *mutants(
        "hard_coded_shape",
        *(edit(MASK, f"{UNPACKED.format(axes=axes)}\n    {MASK}") for axes in (2, 3, 4)),
    ),
    *variants("hard_coded_shape", hide=("unsqueezed", "unsqueezed_once")),
    ("hard_coded_shape", edit(HIDDEN, f"scores[..., mask]\n    {HIDDEN}")),
    ("hard_coded_shape", edit("~mask", "~mask[: scores.shape[-1], : scores.shape[-1]]")),
    ("hard_coded_shape", edit(HIDDEN, f"scores[mask]\n    {HIDDEN}")),
    ("hard_coded_shape", edit(MASK, f"scores = scores.view(2, 4, 64, 64)\n    {MASK}")),
    *variants("scale_sqrt_tokens", scale="sqrt_tokens"),
    *variants("scale_constant", scale=(8.0, 2.0, 64.0, 4.0)),
    *variants("output_rounded", decimals=[("causal_weights", n) for n in (4, 3, 2)]),
    ("gradient_cut", {"softmax": "detached_sum"}),
    *variants(
        "gradient_cut",
        detached=(("mask_scores",), ("causal_weights",), ("mask_scores", "causal_weights")),
    ),
    *variants(
        "input_mutated", mutate=(("scores",), ("mask",), ("weights",), ("scores", "weights"))
    ),
    ("interface", {"renamed": "swapped"}),
    *variants("mask_not_bool", mask_type=tuple(MASK_TYPES)),
    *variants("interface", mask_axes=(2, 1, 3)),
    ("interface", {"mask_axes": 1, "own_hide": "unsqueezed_once"}),  # causal_weights uses it, too
    ("interface", {"mask_axes": 2, "own_hide": "unsqueezed"}),
    *variants("hard_coded_dtype", cast=[("float32", (name,)) for name in FUNCTIONS[1:]]),
    *variants("hard_coded_dtype", cast=(("float32", FUNCTIONS[1:]), ("float64", FUNCTIONS[1:]))),
    *variants(
        "hard_coded_device",
        fixed_device=(*((name,) for name in FUNCTIONS), ("causal_mask", "causal_weights")),
    ),
    *variants(
        "interface",
        returns=[
            (return_type, name) for return_type in ("tuple", "list", "none") for name in FUNCTIONS
        ],
    ),
    *variants("interface", without=FUNCTIONS),
    *variants("interface", renamed=FUNCTIONS),
)

# parametric mutants: the number can have any value
FAMILIES = (
    ("mask_weak_fill", lambda c: {"hide": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"own_hide": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": -c, "own_hide": -INF}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": ("add", -c)}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"own_hide": ("add", -c)}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": ("add", -c), "own_hide": -INF}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": ("below", c)}, FILLS_TRIED),
)
