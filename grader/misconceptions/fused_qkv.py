"""The wrong ways to attend with a fused projection."""

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
    "past_and_sum": lambda w, seen: by_sum(w * zeros_and_ones(seen.tril(-1), w)),
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

    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)

    return type("CausalSelfAttention", (cls,), {"__init__": __init__})


class Attention(nn.Module):
    """The right one, but for its knobs."""

    knobs = None

    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        k = self.knobs
        if n_embd % n_head and k.divisibility == "checked":
            raise ValueError(f"n_embd = {n_embd} cannot be cut into n_head = {n_head} equal heads")
        self.n_head, self.block_size = n_head, k.block or block_size
        self.p = dropout
        make_layers(self, k.params, n_embd, self.block_size)
        self.drop, self.drop_output = nn.Dropout(dropout), nn.Dropout(dropout)
        self.hold_mask(k.holder)

    def hold_mask(self, holder):
        seen = lower(self.block_size)
        if holder in ("buffer", "whole", "whole_stretched", "rows_only", "cut_to_tokens"):
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

    def mask_for(self, scores, holder, T):
        if holder == "cut_to_tokens":
            return self.seen[:T, :T]
        T = scores.shape[-1]
        if holder == "whole":
            return self.seen
        if holder == "whole_stretched":
            return self.seen.expand(*scores.shape)
        if holder == "rows_only":
            return self.seen[:T]
        if holder == "made_on_default_device":
            return lower(T)
        if holder == "made_on_cpu":
            return torch.ones(T, T, device="cpu").tril().bool()
        if holder == "made_in_forward":
            return lower(T).to(scores.device)
        if holder == "list":
            return self.held[0][:T, :T]
        return self.seen[:T, :T].bool()

    def forward(self, x):
        k = self.knobs
        if x.shape[1] > self.block_size:
            if k.context == "checked":
                raise ValueError(f"T = {x.shape[1]} tokens do not fit block_size = {self.block_size}")
            if k.context == "cut":
                x = x[:, : self.block_size]
        given, x = x, ENTRANCES[k.entrance](x)
        s = Sizes(x, self.n_head, self.block_size, k.fixed)
        x = CUTTERS[k.cut_gradient]("x", x)
        y = self.attend(x, s, k)
        W = CUTTERS[k.cut_gradient]("proj", self.weight_of("proj"))
        out = PROJS[k.proj](CUTTERS[k.cut_gradient]("y", y), W)
        if k.params in ("proj_bias", "both_biases"):
            out = out + self.proj.bias
        out = CUTTERS[k.cut_gradient]("out", self.dropped_output(out, k))
        EXITS[k.entrance](given, out)
        return RETURNS[k.returned](out)

    def weight_of(self, name):
        if self.knobs.params == "renamed":
            name = {"qkv": "c_attn", "proj": "c_proj"}[name]
        if self.knobs.params in ("recreated", "anew") or (
            self.knobs.params in ("proj_recreated", "proj_anew") and name == "proj"
        ):
            C = self.C
            return nn.Linear(C, 3 * C if name == "qkv" else C, bias=False).weight.to(self.marker)
        if self.knobs.params == "separate" and name == "qkv":
            return torch.cat([self.W_query.weight, self.W_key.weight, self.W_value.weight])
        if self.knobs.params == "bare" and name == "qkv":
            return self.qkv
        return getattr(self, name).weight

    def attend(self, x, s, k):
        cut = CUTTERS[k.cut_gradient]
        W = cut("W", self.weight_of("qkv"))
        z = F.linear(x, W)
        if k.params in ("qkv_bias", "both_biases"):
            z = z + self.qkv.bias
        parts = CUTS[k.cut](z, x, W, s)
        ways = [k.split if name in k.split_of else "heads" for name in "qkv"]
        q, key, v = (t if t.dim() == 4 else SPLITS[way](t, s) for t, way in zip(parts, ways, strict=True))
        q, key, v = SOURCES[k.source](q, key, v, SPLITS["heads"](x, s))
        if k.attend_over == "heads":
            q, key, v = (t.transpose(1, 2) for t in (q, key, v))
        q, key, v = cut("q", q), cut("k", key), cut("v", v)
        y = self.weigh(q, key, v, s, k)
        if k.attend_over == "heads":
            y = y.transpose(1, 2)
        if k.merge_after_heads == "straight":
            return y.transpose(1, 2).reshape(s.B, s.T, s.C)
        return MERGES[k.merge](y, s)

    def weigh(self, q, key, v, s, k):
        if k.delegated != "no":
            return DELEGATES[k.delegated](self, q, key, v)
        scores = q @ key.transpose(-2, -1)
        if k.softmax_of == "keys_by_queries":
            scores = scores.transpose(-2, -1)
        factor = SCALES[k.scale](s) if isinstance(k.scale, str) else k.scale
        seen = self.mask_for(scores, k.holder, s.T)
        if k.scale_place not in ("after_softmax", "after_mask"):
            scores = scores * factor
        scores = CUTTERS[k.cut_gradient]("scores", scores)
        if k.dropout == "scores_before_mask":
            scores = self.drop(scores)
        scores = MASKS[k.mask](scores, seen)
        if k.scale_place in ("after_mask", "after_mask_too"):
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
        if k.dropout in ("missing", "weights_missing", "scores", "scores_before_mask", "values"):
            return weights
        if k.dropout in ("functional", "weights_functional"):
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


def by_sdpa(self, q, k, v):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=True)


def by_sdpa_masked(self, q, k, v):
    T = q.shape[-2]
    return F.scaled_dot_product_attention(q, k, v, self.seen[:T, :T], self.p if self.training else 0.0)


def by_sdpa_math(self, q, k, v):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return by_sdpa(self, q, k, v)


def by_sdpa_each_head(self, q, k, v):
    return torch.stack([by_sdpa(self, *(t[:, h] for t in (q, k, v))) for h in range(q.shape[1])], dim=1)


def by_multi_head(self, q, k, v):
    (B, nh, T, hd), C = q.shape, q.shape[1] * q.shape[3]
    same = torch.eye(C, dtype=q.dtype, device=q.device)
    flat = (t.permute(2, 0, 1, 3).reshape(T, B, C) for t in (q, k, v))
    options = {"use_separate_proj_weight": True, "q_proj_weight": same, "k_proj_weight": same, "v_proj_weight": same}
    out, _ = F.multi_head_attention_forward(
        *flat, C, nh, None, None, None, None, False, self.p, same, None, self.training, None, False,
        ~self.seen[:T, :T], is_causal=True, **options,
    )  # fmt: skip
    return out.view(T, B, nh, hd).permute(1, 2, 0, 3)


DELEGATES = {
    "sdpa": by_sdpa,
    "sdpa_masked": by_sdpa_masked,
    "sdpa_math": by_sdpa_math,
    "sdpa_each_head": by_sdpa_each_head,
    "multi_head": by_multi_head,
}

GPT2 = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
FACTORIES = {
    "right": {},
    "layers_as_heads": {"medium": (1024, 24), "large": (1280, 36), "xl": (1600, 48)},
    "medium_layers": {"medium": (1024, 24)},
    "large_layers": {"large": (1280, 36)},
    "xl_layers": {"xl": (1600, 48)},
    "medium_12": {"medium": (1024, 12)},
    "always_12": {size: (C // 12 * 12, 12) for size, (C, _) in GPT2.items()},
    "always_16": {size: (C, 16) for size, (C, _) in GPT2.items()},
    "always_8": {size: (C, 8) for size, (C, _) in GPT2.items()},
    "large_16": {"large": (1280, 16)},
    "xl_20": {"xl": (1600, 20)},
    "xl_16": {"xl": (1600, 16)},
    "xl_32": {"xl": (1600, 32)},
    "small_8": {"small": (768, 8)},
    "small_512": {"small": (512, 8)},
    "swapped": {"medium": (1280, 20), "large": (1024, 16)},
    "all_small": dict.fromkeys(GPT2, (768, 12)),
    "order": {size: (nh, C) for size, (C, nh) in GPT2.items()},
    "large_1536": {"large": (1536, 24)},
    "xl_2048": {"xl": (2048, 32)},
}


def factory(cls, sizes, block, unknown):
    table = GPT2 | FACTORIES[sizes]

    def gpt2_attention(size):
        if size not in table:
            if unknown == "listed":
                raise ValueError(f"no GPT-2 of size {size!r}; there are {', '.join(table)}")
            if unknown == "unlisted":
                raise ValueError(f"unknown size {size!r}")
            if unknown == "small":
                size = "small"
            if unknown == "none":
                return None
        return cls(*table[size], block)

    return gpt2_attention


class Knobs:
    def __init__(self, knobs):
        vars(self).update(knobs)


def make(
    *, scale="sqrt_hd", scale_place="scores", mask="causal", late_mask="none", softmax="keys", softmax_of="queries_by_keys",
    cut="qkv", split="heads", split_of="qkv", merge="heads", merge_after_heads="no", attend_over="tokens", source="own",
    mix="matmul", proj="linear", params="right", divisibility="checked", context="checked", block=None, holder="buffer",
    dropout="both", output_dropout="there", cut_gradient="no", entrance="plain", returned="tensor", fixed=None,
    delegated="no", awake=True, gpt2="right", gpt2_block=1024, gpt2_unknown="listed",
):  # fmt: skip
    """The exercise's names, with these faults; the defaults are right."""
    knobs = Knobs({**locals(), "fixed": fixed or {}})
    cls = type("CausalSelfAttention", (Attention,), {"knobs": knobs})
    if not awake:
        cls = late_super(cls)
    return {"CausalSelfAttention": cls, "gpt2_attention": factory(cls, gpt2, gpt2_block, gpt2_unknown)}


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


def each(id_, knob, values):
    return [(id_, {knob: value}) for value in values]


MUTANTS = (
    ("scale_sqrt_c", {"scale": "sqrt_c"}),
    ("scale_missing", {"scale": "missing"}),
    ("mask_missing", {"mask": "missing"}),
    ("wrong_view", {"split": "straight"}),
    ("wrong_view_both", {"split": "straight", "merge": "straight"}),
    ("merge_no_transpose", {"merge": "straight"}),
    ("scale_no_sqrt", {"scale": "hd"}),
    ("scale_twice", {"scale": "hd", "scale_place": "scores_twice"}),
    *(("qkv_order", {"cut": "".join(order)}) for order in permutations("qkv") if "".join(order) != "qkv"),
    ("qkv_packed_per_head", {"cut": "per_head"}),
    ("proj_missing", {"proj": "missing"}),
    ("softmax_query_axis", {"softmax": "queries"}),
    ("softmax_query_axis", {"softmax_of": "keys_by_queries"}),
    ("mask_zero_fill", {"mask": "filled_0"}),
    ("mask_after_softmax", {"mask": "missing", "late_mask": "zeroed"}),
    ("mask_reversed", {"mask": "reversed"}),
    ("mask_excludes_self", {"mask": "excludes_self"}),
    ("mask_peeks_one", {"mask": "peeks_one"}),
    ("view_not_contiguous", {"merge": "view"}),
    ("super_init_missing", {"awake": False}),
    ("scale_multiplied", {"scale": "times_sqrt_hd"}),
    ("scale_multiplied", {"scale": "times_hd"}),
    ("scale_sqrt_heads", {"scale": "sqrt_heads"}),
    ("scale_sqrt_tokens", {"scale": "sqrt_tokens"}),
    ("scale_sqrt_tokens", {"scale": "sqrt_block"}),
    ("scale_sqrt_c", {"scale": "sqrt_3c"}),
    ("scale_no_sqrt", {"scale": "c"}),
    ("scale_sqrt_heads", {"scale": "heads"}),
    ("scale_sqrt_tokens", {"scale": "tokens"}),
    ("scale_twice", {"scale": "three_times"}),
    ("scale_after_softmax", {"scale_place": "after_softmax"}),
    ("scale_after_softmax", {"scale_place": "both_sides"}),
    ("scale_after_softmax", {"scale_place": "output"}),
    ("scale_after_softmax", {"scale_place": "after_softmax", "scale": "sqrt_c"}),
    *(("scale_constant", {"scale": value}) for value in CONSTANTS),
    *each("softmax_wrong_axis", "softmax", ("heads", "batch", "square", "all", "per_batch")),
    *each("softmax_wrong_axis", "softmax", ("heads_as_numbers", "batch_as_numbers")),
    *(("softmax_wrong_axis", {"softmax": way, "mask": "missing"}) for way in ("heads", "batch")),
    *(
        ("softmax_wrong_axis", {"softmax": way, "mask": "causal_finite"})
        for way in ("heads", "batch", "square", "all", "per_batch")
    ),
    ("softmax_query_axis", {"softmax": "queries", "mask": "causal_finite"}),
    ("softmax_query_axis", {"softmax": "queries", "mask": "missing"}),
    *each("softmax_missing", "softmax", ("none", "none_zero", "sum_zero", "sum", "abs_sum", "exp", "sigmoid")),
    *(
        ("softmax_missing", {"softmax": way, "mask": mask})
        for way in ("none", "sum", "sigmoid")
        for mask in ("filled_0", "causal_finite", "missing")
    ),
    *each("softmax_missing", "softmax", ("norm", "tokens")),
    *(("mask_reversed", {"mask": f"reversed_{way}"}) for way in ("finite", "keeps_self", "past_only")),
    ("mask_reversed", {"mask": "missing", "late_mask": "upper"}),
    *(("mask_excludes_self", {"mask": f"excludes_self_{way}"}) for way in ("finite", "but_first")),
    ("mask_excludes_self", {"mask": "excludes_self", "softmax": "as_numbers"}),
    ("mask_excludes_self", {"mask": "causal", "late_mask": "past_and_sum"}),
    ("mask_peeks_one", {"mask": "peeks_two"}),
    *(("mask_zero_fill", {"mask": f"filled_{f:g}"}) for f in dict.fromkeys(FILLS) if f),
    *(("mask_weak_fill", {"mask": f"filled_{f:g}"}) for f in WEAK),
    *(("mask_weak_fill", {"mask": f"plus_{f:g}"}) for f in (*WEAK, -50.0)),
    *(("mask_plus_inf", {"mask": f"plus_{way}"}) for way in ("inf", "large", "inf_added")),
    *(("mask_nan", {"mask": f"nan_{way}"}) for way in ("product", "scores_times", "zero_times", "seen")),
    *(
        ("mask_nan", {"mask": "missing", "late_mask": way})
        for way in ("minus_inf", "minus_inf_added", "times_minus_inf", "minus_large", "minus_inf_and_sum")
    ),
    *each("mask_added", "mask", ("added", "added_future", "added_upper", "subtracted")),
    *(("mask_added", {"mask": way, "scale_place": "after_mask"}) for way in ("added", "added_future", "subtracted")),
    *(("mask_weak_fill", {"mask": f"filled_{f:g}", "scale_place": "after_mask"}) for f in WEAK[:3]),
    *(("mask_weak_fill", {"mask": f"plus_{f:g}", "scale_place": "after_mask"}) for f in WEAK[:3]),
    ("mask_not_sliced", {"holder": "whole"}),
    ("mask_not_sliced", {"holder": "rows_only"}),
    ("mask_not_sliced", {"holder": "rows_only", "mix": "einsum"}),
    ("mask_not_sliced", {"holder": "whole_stretched"}),
    ("mask_not_sliced", {"holder": "whole", "mix": "einsum"}),
    ("mask_not_sliced", {"holder": "whole", "mix": "einsum", "merge": "flattened"}),
    ("mask_not_moved", {"holder": "attribute"}),
    ("mask_not_moved", {"holder": "list"}),
    *each("mask_is_parameter", "holder", ("parameter", "float_parameter", "bool_parameter")),
    ("context_unchecked", {"context": "open", "holder": "made_in_forward"}),
    ("context_unchecked", {"context": "cut"}),
    *(("wrong_view", {"split": way}) for way in WRONG_VIEWS[1:]),
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
    *(("wrong_view_both", {"split": way, "merge": "straight"}) for way in WRONG_VIEWS[1:]),
    *(
        ("wrong_view_values", {"split": way, "split_of": some})
        for way in WRONG_VIEWS
        for some in ("v", "q", "k", "qk", "qv", "kv")
    ),
    *(("merge_wrong_axes", {"merge": way}) for way in MERGES if way.startswith("axes")),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_interleaved", {"split": "interleaved", "merge": "axes_(2, 3, 1)"}),
    ("heads_interleaved", {"cut": "heads_innermost"}),
    ("heads_interleaved", {"cut": "heads_innermost", "merge": "axes_(2, 3, 1)"}),
    *(("heads_interleaved", {"split": "interleaved", "split_of": some}) for some in ("v", "q", "k", "qk", "qv", "kv")),
    ("heads_missing_transpose", {"attend_over": "heads"}),
    ("heads_missing_transpose", {"attend_over": "heads", "mask": "missing"}),
    ("heads_missing_transpose", {"attend_over": "heads", "merge": "straight"}),
    ("heads_missing_transpose", {"attend_over": "heads", "holder": "whole"}),
    ("heads_missing_transpose", {"attend_over": "heads", "holder": "cut_to_tokens"}),
    ("heads_missing_transpose", {"attend_over": "heads", "holder": "cut_to_tokens", "merge": "straight"}),
    ("heads_missing_transpose", {"attend_over": "heads", "mask": "missing", "merge": "straight"}),
    *(("heads_averaged", {"merge": way}) for way in MERGES if way.startswith(("mean", "sum"))),
    *each("heads_reversed", "merge", ("reversed", "rolled", "rolled_back")),
    *(("heads_reversed", {"split": way, "split_of": "v"}) for way in ("reversed", "rolled")),
    *each("heads_mix_batch", "split", ("batch_after_heads", "batch_swapped", "batch_and_tokens")),
    *(
        ("heads_mix_batch", {"split": "batch_after_heads", "merge": way})
        for way in ("batch_joined", "heads_from_batch")
    ),
    *each("heads_mix_batch", "merge", ("batch_joined", "heads_from_batch", "heads_along_tokens", "batch_viewed")),
    *each(
        "qkv_packed_per_head",
        "cut",
        ("per_channel", "per_head_last", "hd_first", "three_last_heads_innermost", "every_third_row"),
    ),
    *(("qkv_packed_per_head", {"cut": way}) for way in CUTS if way.startswith("per_head_") and len(way) == 12),
    *(("qkv_sliced_by_columns", {"cut": way}) for way in CUTS if way.startswith("columns")),
    *(("weight_not_transposed", {"cut": way}) for way in CUTS if way.startswith("untransposed")),
    *each("values_wrong_source", "source", ("v_is_k", "v_is_x", "v_is_q")),
    ("proj_transposed", {"proj": "untransposed"}),
    *each("proj_bias", "params", ("both_biases", "proj_bias", "qkv_bias")),
    *each("dropout_always_on", "dropout", ("functional", "weights_functional", "output_functional", "kept_training")),
    ("dropout_missing", {"dropout": "missing"}),
    *each("dropout_before_softmax", "dropout", ("scores", "scores_before_mask")),
    *(
        ("dropout_before_softmax", {"dropout": way, "output_dropout": "missing"})
        for way in ("scores", "scores_before_mask")
    ),
    ("dropout_on_output_only", {"dropout": "weights_missing"}),
    ("dropout_output_missing", {"dropout": "output_missing"}),
    ("view_not_contiguous", {"merge": "view_after_permute"}),
    ("view_not_contiguous", {"merge": "contiguous_too_early"}),
    ("divisibility_unchecked", {"divisibility": "open"}),
    *each("hard_coded_dtype", "entrance", ("float32", "float64", "half")),
    ("hard_coded_dtype", {"returned": "float32"}),
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
    *(("gradient_cut", {"cut_gradient": place}) for place in CUTTERS if place != "no"),
    *each("input_mutated", "entrance", ("zeroed", "overwritten", "residual", "scaled")),
    *(("hard_coded_shape", {"fixed": {"nh": nh}}) for nh in (4, 2, 8, 12, 6, 3)),
    *(("hard_coded_shape", {"fixed": {"hd": hd}}) for hd in (64, 16, 8, 4)),
    *(("hard_coded_shape", {"fixed": {"B": B}}) for B in (1, 2, 4, 8)),
    *(("hard_coded_shape", {"fixed": {"T": T}}) for T in (4, 6, 8, 10, 16)),
    *(("hard_coded_shape", {"fixed": {"C": C}}) for C in (64, 12, 768)),
    ("hard_coded_shape", {"fixed": {"T": "block"}}),
    ("hard_coded_shape", {"fixed": {"B": 2, "T": 8, "C": 64, "nh": 4}}),
    *each("hard_coded_device", "holder", ("made_on_default_device", "made_on_cpu")),
    *each("hard_coded_device", "entrance", ("cpu_back", "cpu", "cuda")),
    *(("delegated", {"delegated": way}) for way in DELEGATES),
    *(("gpt2_sizes", {"gpt2": way}) for way in FACTORIES if way not in ("right", "always_12")),
    ("gpt2_sizes", {"gpt2_unknown": "small"}),
    *(("gpt2_sizes", {"gpt2_block": block}) for block in (512, 2048, 1000, 256)),
    *each("interface", "returned", ("with_nothing", "tuple", "list", "nothing", "numpy")),
)
