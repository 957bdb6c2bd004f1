"""What the wrong ways to attend with a fused projection do at each step; shared by exercises 7 and 8."""

import math
from itertools import permutations

import torch
import torch.nn.functional as F

from ._masking import HIDE, LOW_FILLS, PRECEDENCE, SOFTMAX

INF = math.inf

# What the scores are multiplied by, (s: sizes); a number stands for itself.
SCALES = {
    "sqrt_hd": lambda s: s.hd**-0.5,
    "sqrt_c": lambda s: s.C**-0.5,
    "c": lambda s: 1 / s.C,
    "missing": lambda s: 1.0,
    "hd": lambda s: 1 / s.hd,
    "times_sqrt_hd": lambda s: s.hd**0.5,
    "times_hd": lambda s: float(s.hd),
    "times_sqrt_c": lambda s: s.C**0.5,
    "sqrt_heads": lambda s: s.nh**-0.5,
    "heads": lambda s: 1 / s.nh,
    "sqrt_tokens": lambda s: s.T**-0.5,
    "tokens": lambda s: 1 / s.T,
    "sqrt_block": lambda s: s.block**-0.5,
    "sqrt_3c": lambda s: (3 * s.C) ** -0.5,
    "three_times": lambda s: s.hd**-1.5,
    "sqrt_c_and_hd": lambda s: (s.C * s.hd) ** -0.5,
    "sqrt_batch": lambda s: s.B**-0.5,
    "sqrt_batch_and_heads": lambda s: (s.B * s.nh) ** -0.5,
    "rounded_down": lambda s: 1 / math.floor(math.sqrt(s.hd)),
    "rounded": lambda s: 1 / round(math.sqrt(s.hd)),
    "rounded_up": lambda s: 1 / math.ceil(math.sqrt(s.hd)),
}
SCALES |= {way: lambda s, way=way: PRECEDENCE[way](s.hd, s.C, s.nh) for way in PRECEDENCE}

# What is done to the scores once they are scaled.
SCORES = {
    "as_they_are": lambda a: a,
    "rounded_down": lambda a: torch.div(a, 1, rounding_mode="floor"),
    "rounded_down_without_gradient": lambda a: a // 1,
}


def lower(T, diagonal=0):
    return torch.ones(T, T, dtype=torch.bool).tril(diagonal)


def zeros_and_ones(seen, scores):
    return seen.to(scores.device, scores.dtype)


class Masks(dict):
    """Masks by name. One with a number in it, such as filled_-2.5 or plus_-2.5, need not be listed."""

    def __missing__(self, name):
        form, number = name.rsplit("_", 1)
        fill = float(number)
        if form == "below":
            return lambda a, seen: a.masked_fill(~seen, float(a.detach().min()) + fill)
        if form == "filled":
            return lambda a, seen: a.masked_fill(~seen, fill)
        if form == "plus":
            return lambda a, seen: a + zeros_and_ones(~seen, a) * fill
        raise KeyError(name)


# Masks: (scores, seen) -> scores, where `seen` is True for the present and the past.
MASKS = Masks(
    {
        **{way: HIDE[way] for way in (*LOW_FILLS, "below_head", "below_head_fixed")},
        "causal": lambda a, seen: a.masked_fill(~seen, -INF),
        "causal_finite": lambda a, seen: a.masked_fill(~seen, -1e9),
        "causal_added": lambda a, seen: a + torch.zeros_like(a).masked_fill(~seen, -INF),
        "missing": lambda a, seen: a,
        "reversed": lambda a, seen: a.masked_fill(seen, -INF),
        "reversed_finite": lambda a, seen: a.masked_fill(seen, -1e9),
        "reversed_added": lambda a, seen: a + zeros_and_ones(seen, a) * -1e9,
        "reversed_keeps_self": lambda a, seen: a.masked_fill(~seen.mT, -INF),
        "reversed_past_only": lambda a, seen: a.masked_fill(seen.tril(-1), -INF),
        "excludes_self": lambda a, seen: a.masked_fill(~seen.tril(-1), -INF),
        "excludes_self_finite": lambda a, seen: a.masked_fill(~seen.tril(-1), -1e9),
        "excludes_self_but_first": lambda a, seen: a.masked_fill(~(seen.tril(-1) | first_only(seen)), -INF),
        "peeks_one": lambda a, seen: a.masked_fill(~lower(len(seen), 1).to(a.device), -INF),
        "peeks_two": lambda a, seen: a.masked_fill(~lower(len(seen), 2).to(a.device), -INF),
        "plus_inf": lambda a, seen: a.masked_fill(~seen, INF),
        "plus_large": lambda a, seen: a.masked_fill(~seen, 1e9),
        "plus_inf_added": lambda a, seen: a + torch.zeros_like(a).masked_fill(~seen, INF),
        "nan_product": lambda a, seen: a + zeros_and_ones(~seen, a) * -INF,
        "nan_scores_times": lambda a, seen: a * zeros_and_ones(seen, a).masked_fill(~seen, -INF),
        "nan_zero_times": lambda a, seen: a * torch.zeros_like(a).masked_fill(~seen, -INF),
        "nan_seen": lambda a, seen: a + zeros_and_ones(seen, a) * -INF,
        "added": lambda a, seen: a + zeros_and_ones(seen, a),
        "added_future": lambda a, seen: a + zeros_and_ones(~seen, a),
        "added_upper": lambda a, seen: a + zeros_and_ones(seen.mT, a),
        "subtracted": lambda a, seen: a - zeros_and_ones(seen, a),
    }
)
FILLS = (0.0, 1e-9, -1e-9, 1e-10, 1e-8, 1e-6, 1e-5, 1e-3, -1e-6, -1e-5, -1e-3, 0.01, -0.01, 0.1, -0.1)
# The curve of a family has the others, but for a few that lie where its calls hardly tell them apart.
WEAK = (-10.0, -1.0, -5.0, -8.0, -9.0, -12.0, -13.0, -14.0, -15.0, -16.0, -20.0, -40.0)


def first_only(seen):
    corner = torch.zeros_like(seen)
    corner[0, 0] = True
    return corner


# What happens to the weights after the softmax: (weights, seen) -> weights.
LATE_MASKS = {
    "none": lambda w, seen: w,
    "zeroed": lambda w, seen: w.masked_fill(~seen, 0.0),
    "minus_inf": lambda w, seen: w.masked_fill(~seen, -INF),
    "minus_inf_added": lambda w, seen: w + torch.zeros_like(w).masked_fill(~seen, -INF),
    "minus_large": lambda w, seen: w.masked_fill(~seen, -1e9),
    "times_minus_inf": lambda w, seen: w + zeros_and_ones(~seen, w) * -INF,
    "minus_inf_and_sum": lambda w, seen: SOFTMAX["sum"](w.masked_fill(~seen, -INF)),
    "upper": lambda w, seen: w * zeros_and_ones(seen.mT, w),
    "past_and_sum": lambda w, seen: SOFTMAX["sum"](w * zeros_and_ones(seen.tril(-1), w)),
}

# A score that is hidden counts as 0.
hidden_as_zero = SOFTMAX["missing_zero_filled"]

# Scores to weights.
SOFTMAXES = SOFTMAX | {
    "as_numbers": lambda a: a.softmax(-1).nan_to_num(0.0),
    "heads_as_numbers": lambda a: a.softmax(1).nan_to_num(0.0),
    "batch_as_numbers": lambda a: a.softmax(0).nan_to_num(0.0),
    "queries_as_numbers": lambda a: a.softmax(-2).nan_to_num(0.0),
    "sum_of_sizes": lambda a: hidden_as_zero(a) / hidden_as_zero(a).abs().sum(-1, keepdim=True),
    "norm": lambda a: F.normalize(hidden_as_zero(a), dim=-1),
    "tokens": lambda a: hidden_as_zero(a) / a.shape[-1],
}

# (B, T, C) to (B, nh, T, hd).
SPLITS = {
    "heads": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 2),
    "straight": lambda t, s: t.reshape(s.B, s.nh, s.T, s.hd),
    "straight_hd_first": lambda t, s: t.reshape(s.B, s.nh, s.hd, s.T).transpose(2, 3),
    "interleaved": lambda t, s: t.view(s.B, s.T, s.hd, s.nh).permute(0, 3, 1, 2),
    "sizes_swapped": lambda t, s: t.view(s.B, s.T, s.hd, s.nh).transpose(1, 2),
    "swapped_first": lambda t, s: t.transpose(1, 2).reshape(s.B, s.nh, s.T, s.hd),
    "last_swapped": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(2, 3).reshape(s.B, s.nh, s.T, s.hd),
    "wrong_swap": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 3).reshape(s.B, s.nh, s.T, s.hd),
    "moved_then_straight": lambda t, s: SPLITS["heads"](t, s).reshape(s.B, s.T, s.nh, s.hd).transpose(1, 2),
    "batch_after_heads": lambda t, s: t.reshape(s.nh, s.B, s.T, s.hd).transpose(0, 1),
    "batch_swapped": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).permute(2, 0, 1, 3).reshape(s.B, s.nh, s.T, s.hd),
    "batch_and_tokens": lambda t, s: t.reshape(s.T, s.B, s.nh, s.hd).permute(1, 2, 0, 3),
    "reversed": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 2).flip(1),
    "rolled": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 2).roll(1, 1),
}

# (B, nh, T, hd) to (B, T, C).
MERGES = {
    "heads": lambda y, s: y.transpose(1, 2).reshape(s.B, s.T, s.C),
    "flattened": lambda y, s: y.transpose(1, 2).flatten(2),
    "straight": lambda y, s: y.reshape(s.B, s.T, s.C),
    "view": lambda y, s: y.transpose(1, 2).view(s.B, s.T, s.C),
    "view_after_permute": lambda y, s: y.permute(0, 2, 3, 1).view(s.B, s.T, s.C),
    "contiguous_too_early": lambda y, s: y.contiguous().transpose(1, 2).view(s.B, s.T, s.C),
    "mean": lambda y, s: y.mean(1),
    "sum": lambda y, s: y.sum(1),
    "mean_repeated": lambda y, s: y.mean(1).repeat(1, 1, s.nh),
    "sum_repeated": lambda y, s: y.sum(1).repeat(1, 1, s.nh),
    "mean_interleaved": lambda y, s: y.mean(1).repeat_interleave(s.nh, -1),
    "sum_interleaved": lambda y, s: y.sum(1).repeat_interleave(s.nh, -1),
    "mean_padded": lambda y, s: F.pad(y.mean(1), (0, s.C - s.hd)),
    "sum_padded": lambda y, s: F.pad(y.sum(1), (0, s.C - s.hd)),
    "reversed": lambda y, s: MERGES["heads"](y.flip(1), s),
    "rolled": lambda y, s: MERGES["heads"](y.roll(1, 1), s),
    "rolled_back": lambda y, s: MERGES["heads"](y.roll(-1, 1), s),
    "sizes_of_transposed": lambda y, s: y.transpose(1, 2).reshape(s.B, s.nh, s.T * s.hd),
    "heads_along_tokens": lambda y, s: torch.cat(list(y.unbind(1)), dim=1).reshape(s.B, s.T, s.C),
    "batch_joined": lambda y, s: y.permute(1, 2, 0, 3).reshape(s.B, s.T, s.C),
    "batch_viewed": lambda y, s: y.reshape(s.nh, s.B, s.T, s.hd).permute(1, 2, 0, 3).reshape(s.B, s.T, s.C),
    "heads_from_batch": lambda y, s: MERGES["heads"](y.transpose(0, 1).reshape(s.B, s.nh, s.T, s.hd), s),
}
MOVED = [order for order in permutations((1, 2, 3)) if order not in ((2, 1, 3), (1, 2, 3))]
MERGES |= {f"axes_{o}": lambda y, s, o=o: y.permute(0, *o).reshape(s.B, s.T, s.C) for o in MOVED}


def permuted(order):
    return lambda z, x, W, s: [z.chunk(3, dim=-1)["qkv".index(name)] for name in order]


def by_columns(W, C):
    return [W.reshape(C, 3 * C)[:, i * C : (i + 1) * C] for i in range(3)]


def by_five(z, s, *order):
    """The five axes (B, T, 3, nh, hd) in another order."""
    return z.view(s.B, s.T, 3, s.nh, s.hd).permute(order)


# From the projection z (B, T, 3C), x and the weight W (3C, C) to q, k, v, each (B, T, C) or already in heads.
CUTS = {
    "qkv": permuted("qkv"),
    "per_head": lambda z, x, W, s: z.view(s.B, s.T, s.nh, 3, s.hd).permute(3, 0, 2, 1, 4),
    "per_channel": lambda z, x, W, s: z.view(s.B, s.T, s.C, 3).unbind(-1),
    "per_head_last": lambda z, x, W, s: z.view(s.B, s.T, s.nh, s.hd, 3).permute(4, 0, 2, 1, 3),
    "hd_first": lambda z, x, W, s: z.view(s.B, s.T, s.hd, 3, s.nh).permute(3, 0, 4, 1, 2),
    "heads_innermost": lambda z, x, W, s: z.view(s.B, s.T, 3, s.hd, s.nh).permute(2, 0, 4, 1, 3),
    "three_last_heads_innermost": lambda z, x, W, s: z.view(s.B, s.T, s.hd, s.nh, 3).permute(4, 0, 3, 1, 2),
    "three_outermost": lambda z, x, W, s: z.reshape(3, s.B, s.T, s.nh, s.hd).transpose(2, 3),
    "three_outermost_straight": lambda z, x, W, s: z.reshape(3, s.B, s.nh, s.T, s.hd),
    "three_before_tokens": lambda z, x, W, s: z.reshape(s.B, 3, s.T, s.nh, s.hd).permute(1, 0, 3, 2, 4),
    "three_before_tokens_straight": lambda z, x, W, s: z.reshape(s.B, 3, s.nh, s.T, s.hd).transpose(0, 1),
    "heads_before_tokens": lambda z, x, W, s: z.reshape(s.B, s.nh, s.T, 3, s.hd).permute(3, 0, 1, 2, 4),
    "heads_then_three": lambda z, x, W, s: z.reshape(s.B, s.nh, 3, s.T, s.hd).permute(2, 0, 1, 3, 4),
    "along_tokens": lambda z, x, W, s: z.reshape(s.B, 3 * s.T, s.C).chunk(3, dim=1),
    "batch_then_three": lambda z, x, W, s: by_five(z, s, 0, 2, 3, 1, 4).reshape(3, s.B, s.nh, s.T, s.hd),
    "batch_then_heads": lambda z, x, W, s: by_five(z, s, 0, 3, 2, 1, 4).reshape(3, s.B, s.nh, s.T, s.hd),
    "three_from_batch": lambda z, x, W, s: [by_five(z, s, 0, 2, 3, 1, 4)[i] for i in range(3)],
    "stacked_straight": lambda z, x, W, s: [t.reshape(s.B, s.nh, s.T, s.hd) for t in z.chunk(3, dim=-1)],
    "untransposed": lambda z, x, W, s: [x @ w for w in W.chunk(3)],
    "untransposed_q": lambda z, x, W, s: [x @ W[: s.C], *z.chunk(3, dim=-1)[1:]],
    "untransposed_viewed": lambda z, x, W, s: (x @ W.view(s.C, 3 * s.C)).chunk(3, dim=-1),
    "columns": lambda z, x, W, s: [F.linear(x, w) for w in by_columns(W, s.C)],
    "columns_every_third": lambda z, x, W, s: [F.linear(x, W.reshape(s.C, 3 * s.C)[:, i::3]) for i in range(3)],
    "columns_of_transposed": lambda z, x, W, s: [F.linear(x, W.mT[:, i * s.C : (i + 1) * s.C]) for i in range(3)],
    "columns_sliced": lambda z, x, W, s: [F.linear(x, W[:, i * s.C : (i + 1) * s.C]) for i in range(3)],
    "columns_turned": lambda z, x, W, s: [F.linear(x, w) for w in W.mT.reshape(3, s.C, s.C)],
    "columns_turned_turned": lambda z, x, W, s: [x @ w for w in W.mT.reshape(3, s.C, s.C)],
    "every_third_row": lambda z, x, W, s: [F.linear(x, W.view(s.C, 3, s.C)[:, i]) for i in range(3)],
}
ORDERS = ["".join(order) for order in permutations("qkv") if "".join(order) != "qkv"]
CUTS |= {order: permuted(order) for order in ORDERS}


def permuted_per_head(order):
    return lambda z, x, W, s: [CUTS["per_head"](z, x, W, s)["qkv".index(name)] for name in order]


CUTS |= {f"per_head_{order}": permuted_per_head(order) for order in ORDERS}

# Where the values, queries or keys come from, (q, k, v, x in heads) -> (q, k, v).
SOURCES = {
    "own": lambda q, k, v, x: (q, k, v),
    "v_is_k": lambda q, k, v, x: (q, k, k),
    "v_is_x": lambda q, k, v, x: (q, k, x),
    "v_is_q": lambda q, k, v, x: (q, k, q),
}
PROJS = {
    "linear": lambda y, W: F.linear(y, W),
    "missing": lambda y, W: y,
    "untransposed": lambda y, W: y @ W,
    "twice": lambda y, W: F.linear(F.linear(y, W), W),
}


def whole(w, v):
    """Every head's weights with the values of all heads side by side: (B, nh, T, C)."""
    return w @ v.transpose(1, 2).flatten(2)[:, None]


# Weights and values to what each head says: the same, until a size is 1 by mistake.
MIXES = {
    "matmul": lambda w, v: w @ v,
    "einsum": lambda w, v: torch.einsum("bhqk,bhkd->bhqd", w, v),
    "whole_mean": lambda w, v: whole(w, v).mean(1).unflatten(-1, v.shape[1::2]).transpose(1, 2),
    "whole_sum": lambda w, v: whole(w, v).sum(1).unflatten(-1, v.shape[1::2]).transpose(1, 2),
}
