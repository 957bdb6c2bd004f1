"""The wrong ways to attend on two paths and to compare them.

A knob of attend and its like holds on both paths; with `flash_` or `manual_` before its name, on that path alone.
"""

import math
from itertools import permutations

import torch
import torch.nn.functional as F
from torch import nn

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
    "sqrt_heads": lambda s: s.nh**-0.5,
    "heads": lambda s: 1 / s.nh,
    "sqrt_tokens": lambda s: s.T**-0.5,
    "tokens": lambda s: 1 / s.T,
    "sqrt_block": lambda s: s.block**-0.5,
    "sqrt_3c": lambda s: (3 * s.C) ** -0.5,
    "sqrt_3hd": lambda s: (3 * s.hd) ** -0.5,
    "quarter_root": lambda s: s.hd**-0.25,
    "three_times": lambda s: s.hd**-1.5,
    "sqrt_c_and_hd": lambda s: (s.C * s.hd) ** -0.5,
}


def lower(T, diagonal=0):
    return torch.ones(T, T, dtype=torch.bool).tril(diagonal)


def zeros_and_ones(seen, scores):
    return seen.to(scores.device, scores.dtype)


# Masks: (scores, seen) -> scores, where `seen` is True for the present and the past.
MASKS = {
    "causal": lambda a, seen: a.masked_fill(~seen, -INF),
    "causal_finite": lambda a, seen: a.masked_fill(~seen, -1e9),
    "missing": lambda a, seen: a,
    "reversed": lambda a, seen: a.masked_fill(seen, -INF),
    "reversed_finite": lambda a, seen: a.masked_fill(seen, -1e9),
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
FILLS = (
    0.0,
    1e-9,
    -1e-9,
    1e-10,
    1e-8,
    1e-6,
    1e-5,
    1e-3,
    -1e-6,
    -1e-5,
    -1e-3,
    1e-2,
    0.01,
    -0.01,
    0.1,
    -0.1,
)
WEAK = (-10.0, -1.0, -5.0, -2.0, -3.0, -4.0, -6.0, -7.0, -8.0, -9.0, -12.0, -15.0, -20.0, -25.0, -30.0, -40.0)
WEAK += (-16.0, -32.0, -11.0, -13.0, -14.0)
MASKS |= {f"filled_{f:g}": lambda a, seen, f=f: a.masked_fill(~seen, f) for f in (*FILLS, *WEAK)}
MASKS |= {f"plus_{f:g}": lambda a, seen, f=f: a + zeros_and_ones(~seen, a) * f for f in (*WEAK, -50.0)}


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
    "minus_inf_and_sum": lambda w, seen: by_sum(w.masked_fill(~seen, -INF)),
    "upper": lambda w, seen: w * zeros_and_ones(seen.mT, w),
}


def by_sum(w):
    return w / w.sum(-1, keepdim=True)


# Scores to weights.
SOFTMAXES = {
    "keys": lambda a: a.softmax(-1),
    "queries": lambda a: a.softmax(-2),
    "heads": lambda a: a.softmax(1),
    "batch": lambda a: a.softmax(0),
    "square": lambda a: a.flatten(-2).softmax(-1).view_as(a),
    "all": lambda a: a.flatten().softmax(0).view_as(a),
    "per_batch": lambda a: a.flatten(1).softmax(-1).view_as(a),
    "as_numbers": lambda a: a.softmax(-1).nan_to_num(0.0),
    "queries_as_numbers": lambda a: a.softmax(-2).nan_to_num(0.0),
    "heads_as_numbers": lambda a: a.softmax(1).nan_to_num(0.0),
    "batch_as_numbers": lambda a: a.softmax(0).nan_to_num(0.0),
    "none": lambda a: a,
    "none_zero": lambda a: a.masked_fill(a == -INF, 0.0),
    "sum": lambda a: a / a.sum(-1, keepdim=True),
    "sum_zero": lambda a: a.masked_fill(a == -INF, 0.0) / a.masked_fill(a == -INF, 0.0).sum(-1, keepdim=True),
    "abs_sum": lambda a: a.masked_fill(a == -INF, 0.0) / a.masked_fill(a == -INF, 0.0).abs().sum(-1, keepdim=True),
    "exp": lambda a: a.exp(),
    "sigmoid": lambda a: a.sigmoid(),
    "norm": lambda a: F.normalize(a.masked_fill(a == -INF, 0.0), dim=-1),
    "tokens": lambda a: a.masked_fill(a == -INF, 0.0) / a.shape[-1],
}

# (B, T, C) to (B, nh, T, hd).
SPLITS = {
    "heads": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 2),
    "straight": lambda t, s: t.reshape(s.B, s.nh, s.T, s.hd),
    "straight_hd_first": lambda t, s: t.reshape(s.B, s.nh, s.hd, s.T).transpose(2, 3),
    "interleaved": lambda t, s: t.view(s.B, s.T, s.hd, s.nh).permute(0, 3, 1, 2),
    "swapped_first": lambda t, s: t.transpose(1, 2).reshape(s.B, s.nh, s.T, s.hd),
    "last_swapped": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(2, 3).reshape(s.B, s.nh, s.T, s.hd),
    "wrong_swap": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 3).reshape(s.B, s.nh, s.T, s.hd),
    "moved_then_straight": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 2).reshape(s.B, s.T, s.nh, s.hd),
    "batch_after_heads": lambda t, s: t.reshape(s.nh, s.B, s.T, s.hd).transpose(0, 1),
    "batch_swapped": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).permute(2, 0, 1, 3).reshape(s.B, s.nh, s.T, s.hd),
    "batch_and_tokens": lambda t, s: t.reshape(s.T, s.B, s.nh, s.hd).permute(1, 2, 0, 3),
    "reversed": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 2).flip(1),
    "rolled": lambda t, s: t.view(s.B, s.T, s.nh, s.hd).transpose(1, 2).roll(1, 1),
}
SPLITS["moved_then_straight"] = lambda t, s: SPLITS["heads"](t, s).reshape(s.B, s.T, s.nh, s.hd).transpose(1, 2)

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
    "heads_along_tokens": lambda y, s: torch.cat(list(y.unbind(1)), dim=1).reshape(s.B, s.T, s.C),
    "batch_joined": lambda y, s: y.permute(1, 2, 0, 3).reshape(s.B, s.T, s.C),
    "batch_viewed": lambda y, s: y.reshape(s.nh, s.B, s.T, s.hd).permute(1, 2, 0, 3).reshape(s.B, s.T, s.C),
    "heads_from_batch": lambda y, s: MERGES["heads"](y.transpose(0, 1).reshape(s.B, s.nh, s.T, s.hd), s),
}
for order in permutations((1, 2, 3)):
    if order not in ((2, 1, 3), (1, 2, 3)):
        MERGES[f"axes_{order}"] = lambda y, s, order=order: y.permute(0, *order).reshape(s.B, s.T, s.C)


def permuted(order):
    return lambda z, x, W, s: [z.chunk(3, dim=-1)["qkv".index(name)] for name in order]


def by_columns(W, C):
    return [W.reshape(C, 3 * C)[:, i * C : (i + 1) * C] for i in range(3)]


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
    "stacked_straight": lambda z, x, W, s: [t.reshape(s.B, s.nh, s.T, s.hd) for t in z.chunk(3, dim=-1)],
    "untransposed": lambda z, x, W, s: [x @ w for w in W.chunk(3)],
    "untransposed_q": lambda z, x, W, s: [x @ W[: s.C], *z.chunk(3, dim=-1)[1:]],
    "untransposed_viewed": lambda z, x, W, s: (x @ W.view(s.C, 3 * s.C)).chunk(3, dim=-1),
    "columns": lambda z, x, W, s: [F.linear(x, w) for w in by_columns(W, s.C)],
    "columns_every_third": lambda z, x, W, s: [F.linear(x, W.reshape(s.C, 3 * s.C)[:, i::3]) for i in range(3)],
    "columns_of_transposed": lambda z, x, W, s: [F.linear(x, W.mT[:, i * s.C : (i + 1) * s.C]) for i in range(3)],
    "columns_sliced": lambda z, x, W, s: [F.linear(x, W[:, i * s.C : (i + 1) * s.C]) for i in range(3)],
    "every_third": lambda z, x, W, s: [z[..., i::3] for i in range(3)],
    "every_third_row": lambda z, x, W, s: [F.linear(x, W.view(s.C, 3, s.C)[:, i]) for i in range(3)],
}
CUTS |= {"".join(order): permuted(order) for order in permutations("qkv")}
CUTS |= {
    f"per_head_{''.join(order)}": lambda z, x, W, s, order=order: [
        CUTS["per_head"](z, x, W, s)["qkv".index(name)] for name in order
    ]
    for order in permutations("qkv")
    if "".join(order) != "qkv"
}

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


# Weights and values to what each head says: the same, until a size is 1 by mistake.
MIXES = {
    "matmul": lambda w, v: w @ v,
    "einsum": lambda w, v: torch.einsum("bhqk,bhkd->bhqd", w, v),
}


class Sizes:
    """B, T, C, nh, hd and block of one call, with those that are written into the code."""

    def __init__(self, x, nh, block, fixed):
        self.B, self.T, self.C = x.shape
        self.nh, self.block = nh, block
        for name, value in fixed.items():
            setattr(self, name, block if value == "block" else value)
        if "hd" not in fixed:
            self.hd = self.C // self.nh
        if "hd" in fixed and "nh" not in fixed:
            self.nh = self.C // self.hd


class Weight(nn.Module):
    """A linear layer that keeps its weight where parameters() does not see it."""

    def __init__(self, n_in, n_out):
        super().__init__()
        object.__setattr__(self, "weight", torch.randn(n_out, n_in) / n_in**0.5)

    def _apply(self, fn, recurse=True):
        object.__setattr__(self, "weight", fn(self.weight))
        return super()._apply(fn, recurse)

    def forward(self, x):
        return F.linear(x, self.weight)


def late_super(cls):
    """A class whose __init__ sets a layer and never wakes its parent."""

    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)

    return type("CausalSelfAttention", (cls,), {"__init__": __init__})


# Masks for the fused function: seen (T, T), True for the present and the past -> its arguments.
FAST_MASKS = {
    "causal": lambda seen: {"is_causal": True},
    "given": lambda seen: {"attn_mask": seen},
    "missing": lambda seen: {},
    "inverted": lambda seen: {"attn_mask": ~seen},
    "reversed_keeps_self": lambda seen: {"attn_mask": seen.mT},
    "excludes_self": lambda seen: {"attn_mask": seen.tril(-1)},
    "peeks_one": lambda seen: {"attn_mask": lower(len(seen), 1).to(seen.device)},
    "peeks_two": lambda seen: {"attn_mask": lower(len(seen), 2).to(seen.device)},
    "added": lambda seen: {"attn_mask": seen.float()},
    "added_future": lambda seen: {"attn_mask": (~seen).float()},
    "zero_fill": lambda seen: {"attn_mask": torch.zeros(seen.shape, device=seen.device)},
    "plus_inf": lambda seen: {"attn_mask": torch.zeros(seen.shape, device=seen.device).masked_fill(~seen, INF)},
    "plus_large": lambda seen: {"attn_mask": torch.zeros(seen.shape, device=seen.device).masked_fill(~seen, 1e9)},
    "nan_product": lambda seen: {"attn_mask": (~seen).float() * -INF},
    "nan_seen": lambda seen: {"attn_mask": seen.float() * -INF},
    "past_hidden": lambda seen: {"attn_mask": torch.zeros(seen.shape, device=seen.device).masked_fill(seen, -INF)},
    "past_hidden_finite": lambda seen: {
        "attn_mask": torch.zeros(seen.shape, device=seen.device).masked_fill(seen, -1e9)
    },
}
FAST_MASKS |= {f"plus_{f:g}": lambda seen, f=f: {"attn_mask": (~seen).float() * f} for f in (*WEAK, -50.0)}


class Attention(nn.Module):
    """The right one, but for its knobs."""

    shared = flash_knobs = manual_knobs = None

    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__()
        k = self.shared
        if n_embd % n_head and k.divisibility == "checked":
            raise ValueError(f"n_embd = {n_embd} cannot be cut into n_head = {n_head} equal heads")
        self.n_head, self.block_size, self.p = n_head, block_size, dropout
        self.flash = FLAGS[k.flag](flash)
        self.chosen = self.flash
        make_layers(self, k.params, n_embd, block_size)
        self.drop, self.drop_output = nn.Dropout(dropout), nn.Dropout(dropout)
        self.hold_mask(k.holder)

    def hold_mask(self, holder):
        seen = lower(self.block_size)
        if holder in ("buffer", "whole", "whole_stretched", "rows_only"):
            self.register_buffer("seen", seen, persistent=False)
        elif holder == "attribute":
            self.seen = seen
        elif holder == "list":
            self.held = [seen]
        elif holder == "float_parameter":
            self.seen = nn.Parameter(seen.float())
        elif holder == "parameter":
            self.seen = nn.Parameter(seen.float(), requires_grad=False)
        elif holder == "bool_parameter":
            self.seen = nn.Parameter(seen, requires_grad=False)

    def mask_for(self, x, holder, T):
        if holder == "whole":
            return self.seen
        if holder == "whole_stretched":
            return self.seen.expand(*x.shape[:2], T, T)
        if holder == "rows_only":
            return self.seen[:T]
        if holder == "made_on_default_device":
            return lower(T)
        if holder == "made_on_cpu":
            return torch.ones(T, T, device="cpu").tril().bool()
        if holder == "made_in_forward":
            return lower(T).to(x.device)
        if holder == "list":
            return self.held[0][:T, :T]
        return self.seen[:T, :T].bool()

    def forward(self, x):
        way = self.chosen if self.shared.flag == "at_construction" else self.flash
        way = way if self.shared.flag != "ignored" else True
        way = way if self.shared.flag != "opposite" else not way
        k = self.flash_knobs if way else self.manual_knobs
        if x.shape[1] > self.block_size:
            if k.context == "checked":
                raise ValueError(f"T = {x.shape[1]} tokens do not fit block_size = {self.block_size}")
            if k.context == "cut":
                x = x[:, : self.block_size]
        given, x = x, ENTRANCES[k.entrance](x)
        s = Sizes(x, self.n_head, self.block_size, k.fixed or {})
        cut = CUTTERS[k.cut_gradient]
        y = cut("y", self.attend(cut("x", x), s, k, way))
        out = PROJS[k.proj](y, cut("proj", self.weight_of("proj")))
        if self.shared.params in ("proj_bias", "both_biases"):
            out = out + self.proj.bias
        out = cut("out", self.dropped_output(out, k))
        EXITS[k.entrance](given, out)
        return RETURNS[k.returned](out)

    def weight_of(self, name):
        params = self.shared.params
        if params == "renamed":
            name = {"qkv": "c_attn", "proj": "c_proj"}[name]
        if params in ("recreated", "anew") or (params in ("proj_recreated", "proj_anew") and name == "proj"):
            C = self.C
            return nn.Linear(C, 3 * C if name == "qkv" else C, bias=False).weight.to(self.marker)
        if params == "separate" and name == "qkv":
            return torch.cat([self.W_query.weight, self.W_key.weight, self.W_value.weight])
        if params == "bare" and name == "qkv":
            return self.qkv
        return getattr(self, name).weight

    def attend(self, x, s, k, flash):
        cut = CUTTERS[k.cut_gradient]
        W = cut("W", self.weight_of("qkv"))
        z = F.linear(x, W)
        if self.shared.params in ("qkv_bias", "both_biases"):
            z = z + self.qkv.bias
        parts = CUTS[k.cut](z, x, W, s)
        ways = [k.split if name in k.split_of else "heads" for name in "qkv"]
        q, key, v = (t if t.dim() == 4 else SPLITS[way](t, s) for t, way in zip(parts, ways, strict=True))
        q, key, v = SOURCES[k.source](q, key, v, SPLITS["heads"](x, s))
        if k.attend_over == "heads":
            q, key, v = (t.transpose(1, 2) for t in (q, key, v))
        q, key, v = cut("q", q), cut("k", key), cut("v", v)
        y = self.fuse(q, key, v, s, k) if flash else self.weigh(q, key, v, s, k)
        if k.attend_over == "heads":
            y = y.transpose(1, 2)
        return MERGES[k.merge](y, s)

    def fuse(self, q, key, v, s, k):
        if k.fast == "written_out":
            return self.weigh(q, key, v, s, k)
        if k.fast == "in_blocks_of_queries":
            return torch.cat([self.weigh_row(q, key, v, t, k) for t in range(q.shape[2])], dim=2)
        if k.fast == "square_too":
            (q @ key.mT).softmax(-1)
        factor = SCALES[k.scale](s) if isinstance(k.scale, str) else k.scale
        options = FAST_MASKS[k.fast_mask](self.mask_for(q, k.holder_in_use, q.shape[-2]))
        if k.fast_mask == "causal":
            options = FAST_MASKS["causal"](None)
        elif options and options["attn_mask"].dtype != torch.bool:
            options["attn_mask"] = options["attn_mask"].to(q.dtype)
        p = {"ungated": self.p, "missing": 0.0, "weights_missing": 0.0}.get(k.dropout, self.p if self.training else 0.0)
        return FASTS[k.fast](q, key, v, dropout_p=p, scale=factor, **options)

    def weigh_row(self, q, key, v, t, k):
        weights = (q[:, :, t, None] @ key[:, :, : t + 1].mT * q.shape[-1] ** -0.5).softmax(-1)
        return self.drop(weights) @ v[:, :, : t + 1]

    def weigh(self, q, key, v, s, k):
        if k.written == "fused":
            p = self.p if self.training else 0.0
            return F.scaled_dot_product_attention(q, key, v, dropout_p=p, is_causal=True)
        if k.written == "fused_masked":
            seen, p = self.mask_for(q, "buffer", q.shape[-2]), self.p if self.training else 0.0
            return F.scaled_dot_product_attention(q, key, v, attn_mask=seen, dropout_p=p)
        scores = q @ key.transpose(-2, -1)
        if k.softmax_of == "keys_by_queries":
            scores = scores.transpose(-2, -1)
        factor = SCALES[k.scale](s) if isinstance(k.scale, str) else k.scale
        seen = self.mask_for(scores, k.holder_in_use, scores.shape[-1])
        if k.scale_place not in ("after_softmax", "after_mask"):
            scores = scores * factor
        scores = CUTTERS[k.cut_gradient]("scores", scores)
        if k.dropout == "scores_before_mask":
            scores = self.drop(scores)
        scores = MASKS[k.mask](scores, seen)
        if k.scale_place == "after_mask":
            scores = scores * factor
        if k.dropout == "scores":
            scores = self.drop(scores)
        weights = LATE_MASKS[k.late_mask](SOFTMAXES[k.softmax](scores), seen)
        if k.scale_place in ("after_softmax", "both_sides"):
            weights = weights * factor
        weights = CUTTERS[k.cut_gradient]("weights", weights)
        y = MIXES[k.mix](self.dropped_weights(weights, k), v)
        return y * factor if k.scale_place == "output" else y

    def dropped_weights(self, weights, k):
        if k.dropout in ("missing", "weights_missing", "scores", "scores_before_mask"):
            return weights
        if k.dropout in ("ungated", "functional"):
            return F.dropout(weights, self.p)
        if k.dropout == "kept_training":
            self.drop.train()
        return self.drop(weights)

    def dropped_output(self, out, k):
        if k.dropout in ("missing", "output_missing") or k.output_dropout == "missing":
            return out
        if k.dropout in ("functional", "output_functional"):
            return F.dropout(out, self.p)
        return self.drop_output(out)


def make_layers(self, params, C, block):
    """The two layers, as `params` says."""
    bias = {"qkv_bias": (True, False), "proj_bias": (False, True), "both_biases": (True, True)}.get(
        params, (False,) * 2
    )
    if params == "renamed":
        self.c_attn, self.c_proj = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
        return
    if params in ("recreated", "proj_recreated", "anew", "proj_anew"):
        self.C = C
        self.register_buffer("marker", torch.zeros(()), persistent=False)
    if params == "recreated":
        return
    if params == "separate":
        self.W_query, self.W_key, self.W_value = (nn.Linear(C, C, bias=False) for _ in range(3))
    elif params == "bare":
        self.qkv = nn.Parameter(torch.randn(3 * C, C) / C**0.5)
    elif params in ("unregistered", "qkv_unregistered"):
        self.qkv = Weight(C, 3 * C)
    elif params == "in_list":
        object.__setattr__(self, "qkv", nn.Linear(C, 3 * C, bias=False))
    else:
        self.qkv = nn.Linear(C, 3 * C, bias=bias[0])
    if params in ("unregistered", "proj_unregistered"):
        self.proj = Weight(C, C)
    elif params != "proj_recreated":
        self.proj = nn.Linear(C, C, bias=bias[1])
    if params == "temperature":
        self.temperature = nn.Parameter(torch.ones(1))
    elif params == "layer_norm":
        self.norm = nn.LayerNorm(C)
    elif params == "positions":
        self.positions = nn.Parameter(torch.zeros(block + 1, C))
    elif params == "extra_layer":
        self.query = nn.Linear(C, C, bias=False)


# What happens to x on its way in and out.
ENTRANCES = {
    "plain": lambda x: x,
    "float32": lambda x: x.float(),
    "float64": lambda x: x.double(),
    "half": lambda x: x.half(),
    "float32_out": lambda x: x,
    "zeroed": lambda x: x.clone(),
    "overwritten": lambda x: x.clone(),
    "residual": lambda x: x.clone(),
    "scaled": lambda x: x.clone(),
    "cuda": lambda x: x.cuda(),
    "cpu": lambda x: x.cpu(),
    "cpu_back": lambda x: x + torch.zeros(x.shape, dtype=x.dtype),
}
EXITS = dict.fromkeys(ENTRANCES, lambda x, out: None) | {
    "zeroed": lambda x, out: x.zero_(),
    "overwritten": lambda x, out: x.copy_(out),
    "residual": lambda x, out: x.add_(out),
    "scaled": lambda x, out: x.mul_(x.shape[-1] ** -0.5),
}
RETURNS = {
    "tensor": lambda out: out,
    "with_nothing": lambda out: (out, None),
    "tuple": lambda out: (out,),
    "list": lambda out: [out],
    "nothing": lambda out: None,
    "numpy": lambda out: out.detach().numpy(),
    "float32": lambda out: out.float(),
}


def cutter(place):
    return lambda where, t: t.detach() if where == place else t


def no_grad_from(place):
    """As under torch.no_grad(): nothing before the place gets a gradient."""
    return lambda where, t: t.detach() if where in place else t


CUTTERS = {"no": lambda where, t: t}
CUTTERS |= {place: cutter(place) for place in ("x", "W", "q", "k", "v", "scores", "weights", "y", "proj", "out")}
CUTTERS |= {"qk": no_grad_from("qk"), "kv": no_grad_from("kv"), "both_weights": no_grad_from(("W", "proj"))}


def by_math(*args, **options):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return F.scaled_dot_product_attention(*args, **options)


FASTS = {"sdpa": F.scaled_dot_product_attention, "square_too": F.scaled_dot_product_attention, "math_kernel": by_math}
FLAGS = dict.fromkeys(("kept", "at_construction", "ignored", "opposite"), lambda flash: flash)
FLAGS |= {"always_true": lambda flash: True, "always_false": lambda flash: False}


# How the paths are compared: (outputs fast and by hand) -> what is returned.
MEASURES = {
    "max": lambda a, b: (a - b).abs().max().item(),
    "mean": lambda a, b: (a - b).abs().mean().item(),
    "sum": lambda a, b: (a - b).abs().sum().item(),
    "signed": lambda a, b: (a - b).max().item(),
    "signed_back": lambda a, b: (b - a).max().item(),
    "min": lambda a, b: (a - b).abs().min().item(),
    "squared": lambda a, b: ((a - b) ** 2).max().item(),
    "mean_squared": lambda a, b: ((a - b) ** 2).mean().item(),
    "norm": lambda a, b: (a - b).norm().item(),
    "difference_of_max": lambda a, b: abs(a.abs().max().item() - b.abs().max().item()),
    "last_token": lambda a, b: (a - b)[:, -1].abs().max().item(),
    "first_entry": lambda a, b: (a - b)[0].abs().max().item(),
    "relative": lambda a, b: ((a - b).abs().max() / b.abs().max()).item(),
    "rounded": lambda a, b: round((a - b).abs().max().item(), 6),
    "close": lambda a, b: 0.0 if torch.allclose(a, b) else 1.0,
    "tensor": lambda a, b: (a - b).abs().max(),
    "list": lambda a, b: [(a - b).abs().max().item()],
    "printed": lambda a, b: None,
    "bool": lambda a, b: torch.allclose(a, b, atol=1e-5),
    "string": lambda a, b: f"{(a - b).abs().max().item():.2e}",
}


def comparison(measure, compared, trace):
    """max_path_difference: which number, of what, and what is left behind."""

    def max_path_difference(module, x):
        flash, training = module.flash, module.training
        if trace != "dropout_on":
            module.eval()
        elif not training and compared == "in_training":
            module.train()
        with torch.set_grad_enabled(torch.is_grad_enabled() and trace == "recorded"):
            outputs = []
            for way in COMPARED[compared]:
                module.flash = flash if way is None else way
                if compared == "other_attribute":
                    module.flash, module.use_flash = flash, way
                outputs.append(module(x).detach())
        leave(module, flash, training, trace)
        return MEASURES[measure](*outputs)

    return max_path_difference


COMPARED = {
    "both": (True, False),
    "other_first": (False, True),
    "fast_twice": (True, True),
    "manual_twice": (False, False),
    "unflipped": (None, None),
    "other_attribute": (True, False),
}


def leave(module, flash, training, trace):
    if trace != "eval":
        module.train(training or trace == "training")
    if trace == "wrong_mode":
        module.train(not training)
    if trace not in ("manual", "fast"):
        module.flash = flash
    if trace == "fast":
        module.flash = True
    if trace == "flipped":
        module.flash = not flash
    if trace == "weights_zeroed":
        for p in module.parameters():
            p.data.zero_()
    if trace == "weights_scaled":
        for p in module.parameters():
            p.data.mul_(0.5)


class Knobs:
    def __init__(self, knobs):
        vars(self).update(knobs)


BY_PATH = {
    "scale": "sqrt_hd", "scale_place": "scores", "mask": "causal", "fast_mask": "causal", "late_mask": "none",
    "softmax": "keys", "softmax_of": "queries_by_keys", "cut": "qkv", "split": "heads", "split_of": "qkv", "merge": "heads",
    "attend_over": "tokens", "source": "own", "mix": "matmul", "proj": "linear", "context": "checked", "dropout": "both",
    "output_dropout": "there", "cut_gradient": "no", "entrance": "plain", "returned": "tensor", "fixed": None,
    "fast": "sdpa", "written": "out", "holder_in_use": "buffer",
}  # fmt: skip
SHARED = {"params": "right", "divisibility": "checked", "holder": "buffer", "flag": "kept", "awake": True}
COMPARING = {"measure": "max", "compared": "both", "trace": "none"}


def make(**knobs):
    """The exercise's names, with these faults; the defaults are right."""
    known = {*BY_PATH, *SHARED, *COMPARING, *(f"{path}_{name}" for path in ("flash", "manual") for name in BY_PATH)}
    assert knobs.keys() <= known, knobs.keys() - known
    shared = Knobs({name: knobs.get(name, right) for name, right in SHARED.items()})
    by_path = {}
    for path in ("flash", "manual"):
        chosen = {name: knobs.get(f"{path}_{name}", knobs.get(name, right)) for name, right in BY_PATH.items()}
        if shared.holder not in ("buffer", "parameter", "float_parameter", "bool_parameter", "attribute"):
            chosen["holder_in_use"] = shared.holder
        by_path[f"{path}_knobs"] = Knobs(chosen)
    cls = type("CausalSelfAttention", (Attention,), {"shared": shared, **by_path})
    compare = comparison(*(knobs.get(name, right) for name, right in COMPARING.items()))
    return {"CausalSelfAttention": cls if shared.awake else late_super(cls), "max_path_difference": compare}


WRONG_VIEWS = ("straight", "straight_hd_first", "swapped_first", "last_swapped", "wrong_swap", "moved_then_straight")
CONSTANTS = (
    0.125,
    0.5,
    0.25,
    8.0,
    0.1,
    64.0,
    1 / 64,
    32**-0.5,
    12**-0.5,
    1 / 12,
    1 / 3,
    3**-0.5,
    0.2,
    5**-0.5,
    6**-0.5,
)
CONSTANTS += (
    2**-0.5,
    10**-0.5,
    7**-0.5,
    1 / 16,
    1 / 32,
    768**-0.5,
    1 / 768,
    2.0,
    4.0,
    10.0,
    16.0,
    0.01,
    0.05,
    24**-0.5,
)


def ways(id_, knobs):
    """A fault on both paths, by hand only, on the fast path only."""
    for prefix in ("", "manual_", "flash_"):
        yield id_, {prefix + name: value for name, value in knobs.items()}


def each(id_, knob, values):
    return [(id_, {knob: value}) for value in values]


def each_way(id_, knob, values):
    return [mutant for value in values for mutant in ways(id_, {knob: value})]


SCALE_IDS = {
    "sqrt_c": "scale_sqrt_c",
    "missing": "scale_missing",
    "hd": "scale_no_sqrt",
    "times_sqrt_hd": "scale_multiplied",
    "sqrt_heads": "scale_sqrt_heads",
    "sqrt_tokens": "scale_sqrt_tokens",
    "times_hd": "scale_multiplied",
    "c": "scale_no_sqrt",
    "sqrt_3c": "scale_sqrt_c",
    "heads": "scale_sqrt_heads",
    "tokens": "scale_sqrt_tokens",
    "sqrt_block": "scale_sqrt_tokens",
    "three_times": "scale_twice",
}
ORDERS = ["".join(order) for order in permutations("qkv") if "".join(order) != "qkv"]
PARTS = ("v", "q", "k", "qk", "qv", "kv")

MUTANTS = (
    ("scale_twice", {"flash_scale": "hd"}),
    ("scale_twice", {"manual_scale": "hd"}),
    ("scale_twice", {"scale": "hd"}),
    *(mutant for way, id_ in SCALE_IDS.items() for mutant in ways(id_, {"scale": way})),
    ("scale_twice", {"flash_scale": "sqrt_c_and_hd"}),
    ("mask_missing", {"flash_fast_mask": "missing"}),
    ("mask_missing", {"manual_mask": "missing"}),
    ("mask_missing", {"mask": "missing", "fast_mask": "missing"}),
    ("mask_sdpa_inverted", {"fast_mask": "inverted"}),
    ("mask_sdpa_inverted", {"fast_mask": "reversed_keeps_self"}),
    ("mask_sdpa_inverted", {"fast_mask": "inverted", "mask": "reversed"}),
    *ways("wrong_view", {"split": "straight"}),
    *ways("wrong_view_both", {"split": "straight", "merge": "straight"}),
    *ways("merge_no_transpose", {"merge": "straight"}),
    *(mutant for order in ORDERS for mutant in ways("qkv_order", {"cut": order})),
    *ways("qkv_packed_per_head", {"cut": "per_head"}),
    *ways("proj_missing", {"proj": "missing"}),
    ("softmax_query_axis", {"softmax": "queries"}),
    ("softmax_query_axis", {"softmax_of": "keys_by_queries"}),
    ("mask_zero_fill", {"mask": "filled_0"}),
    ("mask_zero_fill", {"fast_mask": "zero_fill"}),
    ("mask_zero_fill", {"mask": "filled_0", "fast_mask": "zero_fill"}),
    ("mask_after_softmax", {"mask": "missing", "late_mask": "zeroed"}),
    ("mask_reversed", {"mask": "reversed"}),
    ("mask_reversed", {"fast_mask": "past_hidden"}),
    ("mask_reversed", {"mask": "reversed", "fast_mask": "past_hidden"}),
    ("mask_reversed", {"fast_mask": "past_hidden_finite"}),
    ("mask_reversed", {"mask": "reversed_keeps_self", "fast_mask": "reversed_keeps_self"}),
    *(("mask_reversed", {"mask": f"reversed_{way}"}) for way in ("finite", "keeps_self", "past_only")),
    ("mask_reversed", {"mask": "missing", "late_mask": "upper"}),
    *(("mask_excludes_self", {"mask": f"excludes_self{way}"}) for way in ("", "_finite", "_but_first")),
    ("mask_excludes_self", {"mask": "excludes_self", "softmax": "as_numbers"}),
    ("mask_excludes_self", {"fast_mask": "excludes_self"}),
    ("mask_excludes_self", {"mask": "excludes_self", "fast_mask": "excludes_self"}),
    *(("mask_peeks_one", {"mask": f"peeks_{way}"}) for way in ("one", "two")),
    *(("mask_peeks_one", {"fast_mask": f"peeks_{way}"}) for way in ("one", "two")),
    ("mask_peeks_one", {"mask": "peeks_one", "fast_mask": "peeks_one"}),
    *each("mask_added", "fast_mask", ("added", "added_future")),
    *each("mask_added", "mask", ("added", "added_future", "added_upper", "subtracted")),
    *(("mask_added", {"mask": way, "scale_place": "after_mask"}) for way in ("added", "added_future", "subtracted")),
    *(("mask_weak_fill", {"mask": f"filled_{f:g}", "scale_place": "after_mask"}) for f in WEAK[:3]),
    *(("mask_weak_fill", {"mask": f"plus_{f:g}", "scale_place": "after_mask"}) for f in WEAK[:3]),
    ("mask_added", {"mask": "added", "fast_mask": "added"}),
    *(("mask_zero_fill", {"mask": f"filled_{f:g}"}) for f in dict.fromkeys(FILLS) if f),
    *(("mask_weak_fill", {"mask": f"filled_{f:g}"}) for f in WEAK),
    *(("mask_weak_fill", {"mask": f"plus_{f:g}"}) for f in (*WEAK, -50.0)),
    *(("mask_weak_fill", {"fast_mask": f"plus_{f:g}"}) for f in (*WEAK[:5], -20.0, -50.0)),
    *(("mask_weak_fill", {"mask": f"plus_{f:g}", "fast_mask": f"plus_{f:g}"}) for f in (*WEAK[:5], -20.0, -50.0)),
    *(("mask_plus_inf", {"mask": f"plus_{way}"}) for way in ("inf", "large", "inf_added")),
    *(("mask_plus_inf", {"fast_mask": f"plus_{way}"}) for way in ("inf", "large")),
    *(("mask_nan", {"mask": f"nan_{way}"}) for way in ("product", "scores_times", "zero_times", "seen")),
    *(("mask_nan", {"fast_mask": f"nan_{way}"}) for way in ("product", "seen")),
    ("mask_nan", {"mask": "nan_product", "fast_mask": "nan_product"}),
    *(
        ("mask_nan", {"mask": "missing", "late_mask": way})
        for way in ("minus_inf", "minus_inf_added", "times_minus_inf", "minus_large")
    ),
    *each("scale_after_softmax", "scale_place", ("after_softmax", "both_sides", "output")),
    ("scale_after_softmax", {"scale_place": "after_softmax", "manual_scale": "sqrt_c"}),
    *each_way("scale_constant", "scale", CONSTANTS[:6]),
    *each("scale_constant", "scale", CONSTANTS[6:20]),
    *each("softmax_wrong_axis", "softmax", ("heads", "batch", "square", "all", "per_batch")),
    *each("softmax_wrong_axis", "softmax", ("heads_as_numbers", "batch_as_numbers")),
    *(
        ("softmax_wrong_axis", {"softmax": way, "mask": "causal_finite"})
        for way in ("heads", "batch", "square", "all", "per_batch")
    ),
    ("softmax_query_axis", {"softmax": "queries", "mask": "causal_finite"}),
    *each("softmax_missing", "softmax", ("none", "none_zero", "sum_zero", "sum", "abs_sum", "exp", "sigmoid")),
    *(
        ("softmax_missing", {"softmax": way, "mask": mask})
        for way in ("none", "sum", "sigmoid")
        for mask in ("filled_0", "causal_finite", "missing")
    ),
    *each("softmax_missing", "softmax", ("norm", "tokens")),
    ("mask_not_sliced", {"holder": "whole"}),
    ("mask_not_sliced", {"holder": "whole", "fast_mask": "given"}),
    ("mask_not_sliced", {"holder": "rows_only"}),
    ("mask_not_sliced", {"holder": "rows_only", "mix": "einsum"}),
    ("mask_not_sliced", {"holder": "whole_stretched"}),
    ("mask_not_sliced", {"holder": "whole", "mix": "einsum"}),
    ("mask_not_sliced", {"holder": "whole", "mix": "einsum", "merge": "flattened"}),
    *each("mask_not_moved", "holder", ("attribute", "list")),
    *(("mask_not_moved", {"holder": way, "fast_mask": "given"}) for way in ("attribute", "list")),
    *each("mask_is_parameter", "holder", ("parameter", "float_parameter", "bool_parameter")),
    *ways("context_unchecked", {"context": "open", "holder_in_use": "made_in_forward"}),
    *ways("context_unchecked", {"context": "cut"}),
    *(mutant for way in WRONG_VIEWS[1:3] for mutant in ways("wrong_view", {"split": way})),
    *(("wrong_view", {"split": way}) for way in WRONG_VIEWS[3:]),
    *each(
        "wrong_view",
        "cut",
        (
            "stacked_straight",
            "three_outermost",
            "three_outermost_straight",
            "three_before_tokens",
            "three_before_tokens_straight",
            "heads_before_tokens",
            "heads_then_three",
            "along_tokens",
        ),
    ),
    *(
        ("wrong_view_both", {"cut": way, "merge": "straight"})
        for way in ("three_outermost_straight", "heads_before_tokens")
    ),
    *(mutant for some in PARTS for mutant in ways("wrong_view_values", {"split": "straight", "split_of": some})),
    *(("wrong_view_values", {"split": way, "split_of": some}) for way in WRONG_VIEWS[1:2] for some in PARTS),
    *(("merge_wrong_axes", {"merge": way}) for way in MERGES if way.startswith("axes")),
    *each("merge_wrong_axes", "flash_merge", ("axes_(2, 3, 1)", "axes_(3, 2, 1)")),
    *each("merge_wrong_axes", "manual_merge", ("axes_(2, 3, 1)", "axes_(3, 2, 1)")),
    *ways("heads_interleaved", {"split": "interleaved"}),
    *ways("heads_interleaved", {"cut": "heads_innermost"}),
    ("heads_interleaved", {"split": "interleaved", "merge": "axes_(2, 3, 1)"}),
    ("heads_interleaved", {"cut": "heads_innermost", "merge": "axes_(2, 3, 1)"}),
    *(("heads_interleaved", {"split": "interleaved", "split_of": some}) for some in PARTS),
    *ways("heads_missing_transpose", {"attend_over": "heads"}),
    *ways("heads_missing_transpose", {"attend_over": "heads", "merge": "straight"}),
    ("heads_missing_transpose", {"attend_over": "heads", "mask": "missing", "fast_mask": "missing"}),
    ("heads_missing_transpose", {"manual_attend_over": "heads", "manual_mask": "missing"}),
    ("heads_missing_transpose", {"flash_attend_over": "heads", "flash_fast_mask": "missing"}),
    *each_way("heads_averaged", "merge", ("mean_repeated", "mean")),
    *each(
        "heads_averaged",
        "merge",
        ("sum", "sum_repeated", "mean_interleaved", "sum_interleaved", "mean_padded", "sum_padded"),
    ),
    *each_way("heads_reversed", "merge", ("reversed",)),
    *each("heads_reversed", "merge", ("rolled", "rolled_back")),
    *(("heads_reversed", {"split": way, "split_of": "v"}) for way in ("reversed", "rolled")),
    *each("heads_mix_batch", "split", ("batch_after_heads", "batch_swapped", "batch_and_tokens")),
    *(
        ("heads_mix_batch", {"split": "batch_after_heads", "merge": way})
        for way in ("batch_joined", "heads_from_batch")
    ),
    *each("heads_mix_batch", "merge", ("batch_joined", "heads_from_batch", "heads_along_tokens", "batch_viewed")),
    *(
        ("heads_mix_batch", {f"{path}_merge": way})
        for path in ("flash", "manual")
        for way in ("batch_joined", "heads_from_batch", "heads_along_tokens", "batch_viewed")
    ),
    *each(
        "qkv_packed_per_head",
        "cut",
        ("per_channel", "per_head_last", "hd_first", "three_last_heads_innermost", "every_third_row"),
    ),
    *(("qkv_packed_per_head", {"cut": way}) for way in CUTS if way.startswith("per_head_") and len(way) == 12),
    *(("qkv_sliced_by_columns", {"cut": way}) for way in CUTS if way.startswith("columns")),
    *(("weight_not_transposed", {"cut": way}) for way in CUTS if way.startswith("untransposed")),
    *each_way("values_wrong_source", "source", ("v_is_k", "v_is_x", "v_is_q")),
    *ways("proj_transposed", {"proj": "untransposed"}),
    *each("proj_bias", "params", ("both_biases", "proj_bias", "qkv_bias")),
    *ways("dropout_always_on", {"dropout": "ungated"}),
    *ways("dropout_always_on", {"dropout": "output_functional"}),
    *each("dropout_always_on", "manual_dropout", ("functional", "kept_training")),
    *ways("dropout_missing", {"dropout": "missing"}),
    *each("dropout_before_softmax", "manual_dropout", ("scores", "scores_before_mask")),
    *ways("dropout_on_output_only", {"dropout": "weights_missing"}),
    *ways("dropout_output_missing", {"output_dropout": "missing"}),
    *each_way("view_not_contiguous", "merge", ("view", "view_after_permute", "contiguous_too_early")),
    ("super_init_missing", {"awake": False}),
    ("divisibility_unchecked", {"divisibility": "open"}),
    *each_way("hard_coded_dtype", "entrance", ("float32", "float64", "half")),
    *ways("hard_coded_dtype", {"returned": "float32"}),
    *each(
        "params_not_registered",
        "params",
        (
            "unregistered",
            "qkv_unregistered",
            "proj_unregistered",
            "in_list",
            "recreated",
            "proj_recreated",
            "anew",
            "proj_anew",
        ),
    ),
    *each(
        "params_extra",
        "params",
        ("renamed", "separate", "bare", "temperature", "layer_norm", "positions", "extra_layer"),
    ),
    *(("gradient_cut", {"cut_gradient": place}) for place in CUTTERS if place not in ("no", "scores", "weights")),
    *(("gradient_cut", {"manual_cut_gradient": place}) for place in CUTTERS if place != "no"),
    *(("gradient_cut", {"flash_cut_gradient": place}) for place in ("q", "k", "v", "x", "W", "y", "out")),
    *each_way("input_mutated", "entrance", ("zeroed", "overwritten", "residual")),
    ("input_mutated", {"entrance": "scaled"}),
    *(("hard_coded_shape", {"fixed": {"nh": nh}}) for nh in (4, 2, 8, 12, 6, 3)),
    *(("hard_coded_shape", {"fixed": {"hd": hd}}) for hd in (64, 16, 8, 4)),
    *(("hard_coded_shape", {"fixed": {"B": B}}) for B in (1, 2, 4, 8)),
    *(("hard_coded_shape", {"fixed": {"T": T}}) for T in (4, 6, 8, 10, 16)),
    *(("hard_coded_shape", {"fixed": {"C": C}}) for C in (64, 12, 768)),
    ("hard_coded_shape", {"fixed": {"T": "block"}}),
    ("hard_coded_shape", {"fixed": {"B": 2, "T": 8, "C": 64, "nh": 4}}),
    *each("hard_coded_device", "holder", ("made_on_default_device", "made_on_cpu")),
    *each("hard_coded_device", "entrance", ("cpu_back", "cpu", "cuda")),
    ("delegated", {"fast": "written_out"}),
    *each("delegated", "written", ("fused", "fused_masked")),
    *each("delegated", "fast", ("square_too", "in_blocks_of_queries", "math_kernel")),
    ("delegated", {"fast": "written_out", "written": "fused"}),
    *each("delegated", "flag", ("opposite", "ignored")),
    *each("interface", "flag", ("at_construction", "always_true", "always_false")),
    *(("path_difference", {"compared": way}) for way in COMPARED if way not in ("both", "other_first")),
    *(
        ("path_difference", {"measure": way})
        for way in MEASURES
        if way not in ("max", "rounded", "tensor", "list", "printed", "bool", "string")
    ),
    *each(
        "path_difference",
        "trace",
        (
            "eval",
            "manual",
            "fast",
            "training",
            "dropout_on",
            "recorded",
            "flipped",
            "wrong_mode",
            "weights_zeroed",
            "weights_scaled",
        ),
    ),
    *each("interface", "measure", ("tensor", "list", "printed", "bool", "string")),
    *each("interface", "returned", ("with_nothing", "tuple", "list", "nothing", "numpy")),
)
