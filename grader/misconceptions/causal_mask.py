"""Wrong attempts at the causal mask: one implementation whose knobs turn one fault each."""

import torch

from ._masking import FILLS_TRIED, HIDE, INF, MASK_TYPES, each, known
from ._scores import OFFERED, SHARES, of_both, offered, own, sides, unpacked

# Who may look, as causal_mask draws it. A number N is a mask of N tokens, whatever is asked for.
MASKS = {
    "causal": lambda square: square.tril(),
    "all": lambda square: square,
    "future": lambda square: square.triu(),  # the past masked, the future seen
    "inverted": lambda square: ~square.tril(),  # True means hidden
    "strict": lambda square: square.tril(-1),
    "strict_but_first": lambda square: square.tril(-1) | (square.cumsum(0) + square.cumsum(1) == 2),
    "peeks": lambda square: square.tril(1),
}

# How scores are hidden. A number is filled in where the mask is False.
HIDES = (
    {way: HIDE[way] for way in ("below_all", "below_all_fixed", "below_row", "lowest", "add_hidden")}
    | {
        "nothing": lambda scores, mask: scores + 0.0,
        "true": lambda scores, mask: scores.masked_fill(mask, -INF),  # hidden where the mask is True
        "true_low": lambda scores, mask: scores.masked_fill(mask, -1e9),
        "add_mask": lambda scores, mask: scores + mask,
        "subtract_hidden": lambda scores, mask: scores - ~mask.bool() * 1.0,
        "subtract_mask": lambda scores, mask: scores - mask * 1.0,
        "add_one_inf": lambda scores, mask: scores + mask.to(scores.dtype).masked_fill(~mask, -INF),
        "add_low": lambda scores, mask: scores + ~mask * -1e9,
        "largest": lambda scores, mask: scores.masked_fill(~mask, torch.finfo(scores.dtype).max),
        "nan_visible": lambda scores, mask: scores + ~mask * -INF,  # 0 · −inf where one may look
        "nan_hidden": lambda scores, mask: scores + mask * -INF,  # the same the wrong way round
        "nan_product": lambda scores, mask: scores * torch.where(mask, 1.0, -INF).to(scores.dtype),
        "nan_both": lambda scores, mask: scores * mask + ~mask * -INF,
        "nan_fill": lambda scores, mask: scores.masked_fill(~mask, float("nan")),
        "unsqueezed": lambda scores, mask: scores.masked_fill(~mask[None, None], -INF),
        "unsqueezed_once": lambda scores, mask: scores.masked_fill(~mask[None], -INF),
        "indexed": lambda scores, mask: torch.where(mask, scores, -INF) if scores[mask] is not None else scores,
        "indexed_last": lambda scores, mask: (
            torch.where(mask, scores, -INF) if scores[..., mask] is not None else scores
        ),
        "square": lambda scores, mask: scores.masked_fill(~mask[: scores.shape[-1], : scores.shape[-1]], -INF),
    }
)

# How weights are made where the mask comes after the softmax: (scores, mask, softmax).
AFTERS = {
    "zero": lambda s, m, f: f(s) * m,
    "inf": lambda s, m, f: f(s).masked_fill(~m, -INF),
    "inf_and_sum": lambda s, m, f: SHARES["sum"](f(s).masked_fill(~m, -INF)),
    "inf_product": lambda s, m, f: f(s) * torch.where(m, 1.0, -INF).to(s.dtype),
    "inf_added": lambda s, m, f: f(s) + ~m * -INF,
    "zero_of_zeros": lambda s, m, f: f(s * m) * m,
    "whole_sum": lambda s, m, f: f(s) * m / (f(s) * m).sum(),
}


# Where causal_weights takes T from, for attempts that know one number of axes only.
LENGTHS = {
    "last": lambda scores: scores.shape[-1],
    "axis_0": lambda scores: scores.shape[0],
    "axis_1": lambda scores: scores.shape[1],
    "axis_2": lambda scores: scores.shape[2],
    "axis_3": lambda scores: scores.shape[3],
    "unpack_2": lambda scores: unpacked(scores, 2).shape[-1],
    "unpack_3": lambda scores: unpacked(scores, 3).shape[-1],
    "unpack_4": lambda scores: unpacked(scores, 4).shape[-1],
}


FUNCTIONS = ("causal_mask", "mask_scores", "causal_weights")


# In both functions; with own_ before the name, in causal_weights alone.
MASKED = {
    "mask": "causal",
    "hide": -INF,  # a number to fill in, ("plus", a number to add), ("below", the smallest score by so much), or one of HIDES
}
RIGHT = {
    **own(MASKED), **OFFERED, "mask_type": None,
    "mask_axes": 0,  # of size 1, in front of the mask
    "after": None,  # causal_weights masks after the softmax
    "nan": "kept",  # "zero": a row that sees nobody becomes zeros
    "softmax": -1, "length": "last",
    "scale": None,  # causal_weights scales once more: "sqrt_tokens", or a number
    "decimals": None, "view": None,  # causal_weights rounds to it, and views its scores so
    "mutate": (),  # "scores", "mask" or "weights": what is written into
    "cast": ("", ()), "cut": (), "fixed_device": (),  # functions; a dtype and functions
}  # fmt: skip


def make(**knobs):
    """The exercise's names, with these faults."""
    faults = known(knobs, RIGHT)
    both, its_own = of_both(faults, MASKED)

    def drawn(kind, T, name, device):
        T, kind = (kind, "causal") if isinstance(kind, int) else (T, kind)
        device = "cpu" if name in faults.fixed_device else device
        return MASKS[kind](torch.ones(T, T, dtype=torch.bool, device=device))

    def hidden(kind, scores, seen):
        if isinstance(kind, tuple) and kind[0] == "below":
            return scores.masked_fill(~seen, float(scores.detach().min()) - kind[1])
        if isinstance(kind, tuple):
            return scores + ~seen * kind[1]
        return HIDES[kind](scores, seen) if isinstance(kind, str) else scores.masked_fill(~seen, kind)

    def shares(scores):
        how = faults.softmax
        return torch.softmax(scores, dim=how) if isinstance(how, int) else SHARES[how](scores)

    def causal_mask(T, device=None):
        seen = drawn(both["mask"], T, "causal_mask", device)
        seen = MASK_TYPES[faults.mask_type](seen) if faults.mask_type else seen
        return seen[(None,) * faults.mask_axes]

    def mask_scores(scores, mask):
        out = hidden(both["hide"], scores, mask)
        if "mask_scores" in faults.fixed_device:
            out = out + torch.zeros(out.shape, dtype=out.dtype)
        if "scores" in faults.mutate:
            scores.copy_(out.detach())
        if "mask" in faults.mutate:
            mask.logical_not_()
        return out

    def causal_weights(scores):
        T = LENGTHS[faults.length](scores)
        if faults.view:
            scores = scores.view(faults.view)
        scaled = scores
        if faults.scale is not None:
            scaled = scores / (T**0.5 if faults.scale == "sqrt_tokens" else faults.scale)
        seen = drawn(its_own["mask"], T, "causal_weights", scores.device)
        if faults.after:
            weights = AFTERS[faults.after](scaled, seen, shares)
        else:
            weights = shares(hidden(its_own["hide"], scaled, seen))
        if "weights" in faults.mutate:
            scores.masked_fill_(~seen, -INF)
        weights = weights if faults.decimals is None else weights.round(decimals=faults.decimals)
        return weights.nan_to_num(0.0) if faults.nan == "zero" else weights

    def dressed(name, right):
        def run(*args):
            out = right(*args)
            out = out.to(getattr(torch, faults.cast[0])) if name in faults.cast[1] else out
            return out.detach() if name in faults.cut else out

        return run

    functions = offered(faults, causal_mask, mask_scores, causal_weights, dressed=dressed)
    if faults.renamed == "swapped":
        functions["mask_scores"] = lambda mask, scores: mask_scores(scores, mask)
    return functions


def _masks(id_, kind):
    return sides(id_, MASKED, {"mask": kind})


def _hides(id_, kind):
    return sides(id_, MASKED, {"hide": kind})


WEAK = (-10.0, -1.0, -20.0, -5.0, -50.0, -30.0, -11.0, -12.0, -13.0, -14.0)
ONE_SIZE = (1024, 256, 64, 16, 8, 6, 4, 10, 12, 32, 128)  # of a mask that fits no other: both mistakes at once

MUTANTS = (
    *_masks("mask_missing", "all"),
    *_hides("mask_missing", "nothing"),
    *_masks("mask_reversed", "inverted"),
    *_masks("mask_reversed", "future"),
    *each("mask_reversed", "own_hide", "true"),
    *_hides("mask_reversed", "true"),
    *each("mask_reversed", "hide", "true_low"),
    *each("mask_reversed", "own_hide", "true_low"),
    ("mask_reversed", {"hide": "true_low", "own_hide": -INF}),
    ("mask_reversed", {"mask": "inverted", "hide": "true"}),
    ("mask_reversed", {"mask": "inverted", "hide": "true_low"}),
    *_masks("mask_excludes_self", "strict"),
    *_masks("mask_excludes_self", "strict_but_first"),
    *(
        ("mask_excludes_self", {knob: "strict", **empty_row})
        for knob in ("mask", "own_mask")
        for empty_row in ({"nan": "zero"}, {"hide": -1e9}, {"hide": "add_low"})
    ),
    *_masks("mask_peeks_one", "peeks"),
    *_hides("mask_zero_fill", 0.0),
    *_hides("mask_zero_fill", 1e-9),
    *(m for fill in WEAK for m in _hides("mask_weak_fill", fill)),
    *(m for fill in WEAK for m in _hides("mask_weak_fill", ("plus", fill))),
    *(m for fill in ("below_all", "below_all_fixed", "below_row", "lowest") for m in _hides("mask_weak_fill", fill)),
    *_hides("mask_plus_inf", INF),
    *_hides("mask_plus_inf", "largest"),
    *each("mask_after_softmax", "after", "zero", "zero_of_zeros", "whole_sum"),
    *_hides("mask_nan", "nan_visible"),
    *_hides("mask_nan", "nan_product"),
    *_hides("mask_nan", "nan_both"),
    *_hides("mask_nan", "nan_hidden"),
    *each("mask_nan", "hide", "nan_fill"),
    ("mask_after_softmax", {"after": "inf"}),
    ("mask_nan", {"after": "inf_and_sum"}),
    ("mask_after_softmax", {"after": "inf_product"}),
    ("mask_nan", {"after": "inf_added"}),
    *_hides("mask_added", "add_mask"),
    *_hides("mask_added", "add_hidden"),
    *_hides("mask_added", "subtract_hidden"),
    *each("mask_added", "hide", "subtract_mask"),
    ("mask_added", {"hide": "add_one_inf", "own_hide": -INF}),
    *each("mask_added", "hide", "add_one_inf"),
    *each("softmax_query_axis", "softmax", -2, 1, 2, "queries_by_hand"),
    *each("softmax_wrong_axis", "softmax", 0, "table", "all", "implicit", -3, 1, 2),
    *each("softmax_query_axis", "softmax", 0),
    ("scores_ignored", {"scale": INF}),
    *each("softmax_missing", "softmax", "missing", "zeros", "sum", "sum_of_zeros", "sum_abs_of_zeros", "sum_abs"),
    *each("softmax_missing", "softmax", "sum_queries", "exp", "exp_shifted"),
    *each("mask_not_sliced", "own_mask", *ONE_SIZE),
    *each("hard_coded_shape", "mask", 4, 6, 8, 3, 2, 5, 10, 16, 64, 1024),
    *each("hard_coded_shape", "own_mask", *ONE_SIZE),
    *(("hard_coded_shape", {"mask": n, "own_mask": "causal"}) for n in (4, 6, 8, 64, 1024)),
    *each("size_wrong_axis", "length", "axis_0", "axis_1"),
    *each("hard_coded_shape", "length", *tuple(LENGTHS)[3:]),
    *each("hard_coded_shape", "hide", "unsqueezed", "unsqueezed_once", "indexed_last", "square"),
    ("size_wrong_axis", {"hide": "indexed"}),
    ("hard_coded_shape", {"view": (2, 4, 64, 64)}),
    *each("scale_sqrt_tokens", "scale", "sqrt_tokens"),
    *each("scale_constant", "scale", 8.0, 2.0, 64.0, 4.0),
    *each("output_rounded", "decimals", 4, 3, 2),
    ("gradient_cut", {"softmax": "detached_sum"}),
    *each("gradient_cut", "cut", ("mask_scores",), ("causal_weights",), ("mask_scores", "causal_weights")),
    *each("input_mutated", "mutate", ("scores",), ("mask",), ("weights",), ("scores", "weights")),
    ("interface", {"renamed": "swapped"}),
    *each("mask_not_bool", "mask_type", *MASK_TYPES),
    *each("interface", "mask_axes", 2, 1, 3),
    ("interface", {"mask_axes": 1, "own_hide": "unsqueezed_once"}),  # causal_weights uses it, too
    ("interface", {"mask_axes": 2, "own_hide": "unsqueezed"}),
    *each("hard_coded_dtype", "cast", *(("float32", (name,)) for name in FUNCTIONS[1:])),
    *each("hard_coded_dtype", "cast", ("float32", FUNCTIONS[1:]), ("float64", FUNCTIONS[1:])),
    *each("hard_coded_device", "fixed_device", *((name,) for name in FUNCTIONS), ("causal_mask", "causal_weights")),
    *each("interface", "returns", *((kind, name) for kind in ("tuple", "list", "none") for name in FUNCTIONS)),
    *each("interface", "without", *FUNCTIONS),
    *each("interface", "renamed", *FUNCTIONS),
)

# With a number that nobody can list.
FAMILIES = (
    ("mask_weak_fill", lambda c: {"hide": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"own_hide": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": -c, "own_hide": -INF}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": ("plus", -c)}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"own_hide": ("plus", -c)}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": ("plus", -c), "own_hide": -INF}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"hide": ("below", c)}, FILLS_TRIED),
)
