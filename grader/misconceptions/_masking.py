"""What wrong attempts at causal attention share: masks, softmaxes, and a short form for lists of mutants."""

import math
from types import SimpleNamespace

import torch

from manyheads.checks import edit

INF = math.inf

# Which keys a query may see, from the (n, n) table of key index − query index.
VISIBLE = {
    "causal": lambda ahead: ahead <= 0,
    "none": lambda ahead: ahead == ahead,
    "reversed": lambda ahead: ahead >= 0,
    "future_only": lambda ahead: ahead > 0,
    "excludes_self": lambda ahead: ahead < 0,
    "excludes_self_but_first": lambda ahead: (ahead < 0) | (ahead == 0) & (ahead >= 0).all(-1, keepdim=True),
    "excludes_self_later": lambda ahead: (ahead < 0) | (ahead >= 0).all(-1, keepdim=True),  # query 0 sees all
    "peeks_one": lambda ahead: ahead <= 1,
    "peeks_two": lambda ahead: ahead <= 2,
}

# What stands in a mask that is not boolean.
MASK_TYPES = {
    "float": lambda mask: mask.float(),
    "int": lambda mask: mask.long(),
    "uint8": lambda mask: mask.to(torch.uint8),
    "double": lambda mask: mask.double(),
    "int32": lambda mask: mask.int(),
    "additive": lambda mask: torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -INF),
    "additive_finite": lambda mask: torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -1e9),
}

# How a score is hidden, given the scores and where they are visible. See `hidden` for other ways.
HIDE = {
    "missing": lambda scores, seen: scores,
    "zero_row": lambda scores, seen: scores.masked_fill(~seen, -INF),
    "inf_added": lambda scores, seen: scores + torch.zeros_like(scores).masked_fill(~seen, -INF),
    "below_all": lambda scores, seen: torch.where(seen, scores, scores.min() - 1),
    "below_all_fixed": lambda scores, seen: scores.masked_fill(~seen, float(scores.detach().min()) - 1),
    "below_row": lambda scores, seen: torch.where(seen, scores, scores.amin(-1, keepdim=True) - 1),
    "below_head": lambda scores, seen: torch.where(seen, scores, scores.amin((0, -2, -1), keepdim=True) - 1),
    "below_head_fixed": lambda scores, seen: torch.where(
        seen, scores, scores.detach().amin((0, -2, -1), keepdim=True) - 1
    ),
    "lowest": lambda scores, seen: torch.where(seen, scores, scores.min()),
    "minus_largest": lambda scores, seen: torch.where(seen, scores, -scores.abs().max() - 1),
    "multiply": lambda scores, seen: scores * seen,
    "add_seen": lambda scores, seen: scores + seen,
    "add_hidden": lambda scores, seen: scores + ~seen,
    "subtract_seen": lambda scores, seen: scores - seen.to(scores.dtype),
    "subtract_hidden": lambda scores, seen: scores - (~seen).to(scores.dtype),
    "nan_product": lambda scores, seen: scores + (~seen).to(scores.dtype) * -INF,
    "nan_products": lambda scores, seen: scores * seen + (~seen).to(scores.dtype) * -INF,
    "nan_factor": lambda scores, seen: scores * torch.where(seen, 1.0, -INF).to(scores.dtype),
}

# What some ways of hiding do to the weights, after the softmax.
AFTER = {
    "zero_row": lambda weights, seen: weights.nan_to_num(0.0),
    "after_softmax": lambda weights, seen: weights * seen,
    "by_hand": lambda weights, seen: SOFTMAX["sum"](weights * seen),  # a softmax over what may be seen
    "after_softmax_inf": lambda weights, seen: weights.masked_fill(~seen, -INF),
    "after_softmax_inf_and_sum": lambda weights, seen: SOFTMAX["sum"](weights.masked_fill(~seen, -INF)),
    "after_softmax_nan_product": lambda weights, seen: weights + (~seen).to(weights.dtype) * -INF,
}

# Scores to weights.
SOFTMAX = {
    "detached_sum": lambda s: (s - s.logsumexp(-1, keepdim=True).detach()).exp(),
    "keys": lambda s: s.softmax(-1),
    "queries": lambda s: s.softmax(-2),
    "heads": lambda s: s.softmax(1),
    "batch": lambda s: s.softmax(0),
    "square": lambda s: s.flatten(-2).softmax(-1).view_as(s),
    "sequence": lambda s: s.flatten(1).softmax(-1).view_as(s),
    "everything": lambda s: s.flatten().softmax(0).view_as(s),
    "head": lambda s: s.transpose(0, 1).flatten(1).softmax(-1).view_as(s.transpose(0, 1)).transpose(0, 1),
    "batch_and_heads": lambda s: s.flatten(0, 1).softmax(0).view_as(s),
    "queries_by_hand": lambda s: (e := (s - s.amax(-1, keepdim=True)).exp()) / e.sum(-2, keepdim=True),
    "missing": lambda s: s,
    "missing_zero_filled": lambda s: s.masked_fill(s == -INF, 0.0),
    "sum": lambda s: s / s.sum(-1, keepdim=True),
    "sum_zero_filled": lambda s: SOFTMAX["sum"](SOFTMAX["missing_zero_filled"](s)),
    "sum_of_sizes": lambda s: s / s.abs().sum(-1, keepdim=True),
    "tokens": lambda s: s / s.shape[-1],
    "exp": lambda s: s.exp(),
    "exp_shifted": lambda s: (s - s.amax(-1, keepdim=True)).exp(),
    "log": lambda s: s.log_softmax(-1),
    "sigmoid": lambda s: s.sigmoid(),
}


def visible(which, n, device=None):
    """(n, n): which keys each query may see."""
    place = torch.arange(n, device=device)
    return VISIBLE[which](place[None] - place[:, None])


def hidden(scores, seen, how):
    """The scores with what may not be seen hidden.

    how: a number to fill in, ("add", a number), ("below", a number below the smallest score), or a name of HIDE; one of
    AFTER alone leaves them as they are.
    """
    if isinstance(how, tuple) and how[0] == "below":
        return scores.masked_fill(~seen, float(scores.detach().min()) - how[1])
    if isinstance(how, tuple):
        return scores + (~seen).to(scores.dtype) * how[1]
    if isinstance(how, str):
        return HIDE[how](scores, seen) if how in HIDE else scores
    return scores.masked_fill(~seen, how)


LOW_FILLS = ("below_all", "below_all_fixed", "below_row", "lowest", "minus_largest")

# What brackets that are missing make of the scale, (hd, C, nh).
PRECEDENCE = {
    "half_of_one_over_hd": lambda hd, C, nh: 1 / hd / 2,  # / hd ** 1 / 2
    "one_over_half_hd": lambda hd, C, nh: 2 / hd,  # / (hd ** 1 / 2)
    "one_over_half_hd_floored": lambda hd, C, nh: 1 / max(hd // 2, 1),
    "times_half_hd": lambda hd, C, nh: hd / 2,  # * hd ** 1 / 2
    "c_over_root_nh": lambda hd, C, nh: nh**0.5 / C,  # / (C / nh ** 0.5)
    "c_over_root_nh_floored": lambda hd, C, nh: 1 / (C // nh**0.5),
    "root_of_c_over_root_nh": lambda hd, C, nh: (C // nh**0.5) ** -0.5,
}
PRECEDENCE_OF_HD = tuple(way for way in PRECEDENCE if way.endswith(("hd", "hd_floored")))

# The misconception behind each way to get the scale wrong.
_SCALED = {
    "missing": "missing",
    "no_sqrt": "hd c",
    "twice": "three_times",
    "multiplied": "times_sqrt_hd times_hd times_sqrt_c",
    "sqrt_c": "sqrt_c sqrt_3c sqrt_kv_width sqrt_c_over_sets sqrt_d_query sqrt_d_context",
    "sqrt_heads": "sqrt_heads heads sqrt_sets sqrt_group",
    "sqrt_tokens": "sqrt_tokens tokens sqrt_block sqrt_keys sqrt_queries",
    "wrong_axis": "sqrt_batch sqrt_batch_and_heads sqrt_axis_0 sqrt_axis_1 sqrt_values sqrt_pairs",
    "rounded": "rounded_down rounded rounded_up",
    "precedence": " ".join(PRECEDENCE),
}
SCALE_IDS = {way: f"scale_{kind}" for kind, ways in _SCALED.items() for way in ways.split()}

# What is done to the root of head_dim, and to the scores that are divided by it.
ROUNDED_ROOTS = {"down": math.floor, "nearest": round, "up": math.ceil}
ROUNDED_SCORES = {
    "no": lambda scores: scores,
    "scores": lambda scores: torch.div(scores, 1, rounding_mode="floor"),
    "scores_without_gradient": lambda scores: scores // 1,
}


def weighed(scores, seen, how, softmax):
    """Weights from hidden scores."""
    weights = SOFTMAX[softmax](scores)
    return AFTER[how](weights, seen) if how in AFTER else weights


SCALES_TRIED, FILLS_TRIED = (1e-4, 1e4), (0.02, 40.0)  # the limits of a number that nobody can list


def known(knobs, right):
    """These knobs, and the right value for every other one. right: the knobs that there are."""
    assert knobs.keys() <= right.keys(), knobs.keys() - right.keys()
    return SimpleNamespace(**{**right, **knobs})


def each(misconception, knob, *ways, **others):
    """One mutant for each of these values of the knob; others: further knobs that all of them have."""
    return tuple((misconception, {knob: way, **others}) for way in ways)


def scales(*ways):
    """A mutant for each of these scales, with the misconception behind it."""
    return tuple((SCALE_IDS[way], {"scale": way}) for way in ways)


def at(line, *groups, more=None):
    """An edit of this line of the reference for each of these texts, (id, text, …); more: what all of them change besides."""
    for id_, *texts in groups:
        for new in texts:
            yield id_, edit(line, new, more)


def of(id_, *edits):
    """Mutants of one misconception."""
    return tuple((id_, each) for each in edits)


HEADS_NOT_JOINED = ("heads_not_joined", edit("y.transpose(1, 2).reshape(B, T, C)", "y.transpose(1, 2)"))
KEYS_NOT_TRANSPOSED = ("keys_not_transposed", edit("q @ k.transpose(-2, -1)", "q @ k"))


BIAS_BY_DEFAULT = ("interface", edit("qkv_bias: bool = False", "qkv_bias: bool = True"))


def dropped_in_place(layer):
    """The dropout of this name in place, an edit of every reference that makes it so."""
    line = f"{layer} = nn.Dropout(dropout)"
    return "dropout_in_place", edit(line, line.replace(")", ", inplace=True)"))
