"""The wrong ways to write the loop over heads."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

# What the scores are divided by, from the sizes
SCALES = {
    "sqrt_hd": lambda n: math.sqrt(n.hd),
    "sqrt_c": lambda n: math.sqrt(n.C),
    "sqrt_3c": lambda n: math.sqrt(3 * n.C),
    "missing": lambda n: 1.0,
    "no_sqrt": lambda n: n.hd,
    "no_sqrt_c": lambda n: n.C,
    "multiplied": lambda n: 1 / math.sqrt(n.hd),
    "multiplied_sqrt_c": lambda n: 1 / math.sqrt(n.C),
    "multiplied_hd": lambda n: 1 / n.hd,
    "sqrt_heads": lambda n: math.sqrt(n.nh),
    "sqrt_tokens": lambda n: math.sqrt(n.T),
    "after_softmax": lambda n: 1.0,
}

SOFTMAXES = {
    "keys": lambda z: z.softmax(dim=-1),
    "queries": lambda z: z.softmax(dim=-2),
    "batch": lambda z: z.softmax(dim=0),
    "all_of_a_sequence": lambda z: z.flatten(1).softmax(dim=-1).view_as(z),
    "all": lambda z: z.flatten().softmax(dim=0).view_as(z),
    "missing": lambda z: z,
    "divided": lambda z: z / z.sum(dim=-1, keepdim=True),
    "divided_by_size": lambda z: z / z.abs().sum(dim=-1, keepdim=True),
    "divided_by_tokens": lambda z: z / z.shape[-1],
    "exp_only": lambda z: z.exp(),
    "log": lambda z: z.log_softmax(dim=-1),
    "sigmoid": lambda z: z.sigmoid(),
}

# (scores, hidden): hidden is True above the diagonal
MASKS = {
    "causal": lambda z, hidden: z.masked_fill(hidden, -math.inf),
    "causal_finite": lambda z, hidden: z.masked_fill(hidden, -1e9),
    "missing": lambda z, hidden: z,
    "reversed": lambda z, hidden: z.masked_fill(hidden.mT, -math.inf),
    "reversed_strict": lambda z, hidden: z.masked_fill(~hidden, -math.inf),
    "reversed_strict_finite": lambda z, hidden: z.masked_fill(~hidden, -1e9),
    "excludes_self": lambda z, hidden: z.masked_fill(~hidden.mT, -math.inf),
    "excludes_self_finite": lambda z, hidden: z.masked_fill(~hidden.mT, -1e9),
    "excludes_self_added": lambda z, hidden: z + (~hidden.mT).to(z.dtype) * -1e9,
    "excludes_self_later": lambda z, hidden: z.masked_fill(~hidden.mT & _beyond_first(hidden), -math.inf),
    "excludes_self_zeroed": lambda z, hidden: z.masked_fill(~hidden.mT, -math.inf),
    "peeks_one": lambda z, hidden: z.masked_fill(hidden.triu(2), -math.inf),
    "peeks_two": lambda z, hidden: z.masked_fill(hidden.triu(3), -math.inf),
    "plus_inf": lambda z, hidden: z.masked_fill(hidden, math.inf),
    "plus_large": lambda z, hidden: z.masked_fill(hidden, 1e9),
    "nan_product": lambda z, hidden: z + hidden.to(z.dtype) * -math.inf,
    "nan_scaled": lambda z, hidden: z * torch.where(hidden, -math.inf, 1.0).to(z.dtype),
    "nan_visible": lambda z, hidden: z * (~hidden).to(z.dtype) + hidden.to(z.dtype) * -math.inf,
    "added": lambda z, hidden: z + (~hidden).to(z.dtype),
    "added_hidden": lambda z, hidden: z + hidden.to(z.dtype),
    "subtracted_hidden": lambda z, hidden: z - hidden.to(z.dtype),
    "subtracted": lambda z, hidden: z - (~hidden).to(z.dtype),
    "keys_only": lambda z, hidden: z.masked_fill(hidden[:1], -math.inf),
    "last_row": lambda z, hidden: z.masked_fill(hidden.flip(0, 1), -math.inf),
}

AFTER = {
    "after_softmax": lambda w, hidden: w.masked_fill(hidden, 0.0),
    "after_softmax_reversed": lambda w, hidden: w.masked_fill(hidden.mT, 0.0),
    "nan_after": lambda w, hidden: w.masked_fill(hidden, -math.inf),
    "nan_after_product": lambda w, hidden: w + hidden.to(w.dtype) * -math.inf,
    "nan_after_and_sum": lambda w, hidden: SOFTMAXES["divided"](w.masked_fill(hidden, -math.inf)),
    "excludes_self_zeroed": lambda w, hidden: w.nan_to_num(0.0),
    "excludes_self_by_hand": lambda w, hidden: SOFTMAXES["divided"](w * hidden.mT),  # the softmax, shared out anew
}

# The stacked weight as w_q, w_k, w_v, each (out, in)
CUTS = {
    "rows": lambda w, n: w.split(n.C),
    "packed": lambda w, n: w.view(n.nh, 3, n.hd, n.C).transpose(0, 1).reshape(3, n.C, n.C),
    "packed_last": lambda w, n: w.view(n.C, 3, n.C).transpose(0, 1),
    "packed_interleaved": lambda w, n: w.view(n.hd, 3, n.nh, n.C).transpose(0, 1).reshape(3, n.C, n.C),
    "columns": lambda w, n: w.reshape(n.C, 3 * n.C).mT.split(n.C),
    "columns_turned": lambda w, n: [part.mT for part in w.reshape(n.C, 3 * n.C).mT.split(n.C)],
    "columns_every_third": lambda w, n: w.reshape(n.C, n.C, 3).unbind(-1),
    "columns_every_third_turned": lambda w, n: [part.mT for part in w.reshape(n.C, n.C, 3).unbind(-1)],
    "turned_then_viewed": lambda w, n: w.mT.reshape(3 * n.C, n.C).split(n.C),
    "turned_then_viewed_turned": lambda w, n: [part.mT for part in w.mT.reshape(3 * n.C, n.C).split(n.C)],
    "columns_chunked": lambda w, n: w.chunk(3, dim=1),
    "columns_sliced": lambda w, n: [w[:, i * n.C // 3 : (i + 1) * n.C // 3].mT for i in range(3)],
    "columns_whole": lambda w, n: [w[:, i * n.C : (i + 1) * n.C] for i in range(3)],
    "block_diagonal": lambda w, n: [part * _blocks(n).to(w) for part in w.split(n.C)],
}

# One projected tensor (B, T, C) as heads
SPLITS = {
    "blocks": lambda z, n: [z[..., h * n.hd : (h + 1) * n.hd] for h in range(n.nh)],
    "viewed": lambda z, n: list(z.view(n.B, n.T, n.nh, n.hd).unbind(2)),
    "interleaved": lambda z, n: [z[..., h :: n.nh] for h in range(n.nh)],
    "straight": lambda z, n: list(z.view(n.B, n.nh, n.T, n.hd).unbind(1)),
    "straight_after_swap": lambda z, n: list(z.mT.reshape(n.B, n.nh, n.T, n.hd).unbind(1)),
    "mixed": lambda z, n: list(z.view(n.nh, n.B, n.T, n.hd)),
    "mixed_turned": lambda z, n: list(z.view(n.T, n.nh, n.B, n.hd).permute(1, 2, 0, 3)),
    "first_only": lambda z, n: [z[..., : n.hd]] * n.nh,
    "not_moved": lambda z, n: [z.view(n.B, n.T, n.nh, n.hd)],
    "not_moved_indexed": lambda z, n: [z.view(n.B, n.T, n.nh, n.hd)[:, h] for h in range(n.nh)],
    "batch_indexed": lambda z, n: [z.view(n.B, n.T, n.nh, n.hd).transpose(1, 2)[h] for h in range(n.nh)],
    "sized_by_heads": lambda z, n: [z[..., h * n.nh : (h + 1) * n.nh] for h in range(n.nh)],
}

JOINS = {
    "side_by_side": lambda heads, n: torch.cat(heads, dim=-1).flatten(2),
    "reversed": lambda heads, n: torch.cat(heads[::-1], dim=-1),
    "rolled": lambda heads, n: torch.cat(heads[-1:] + heads[:-1], dim=-1),
    "rolled_back": lambda heads, n: torch.cat(heads[1:] + heads[:1], dim=-1),
    "mean": lambda heads, n: sum(heads) / len(heads),
    "sum": lambda heads, n: sum(heads),
    "mean_repeated": lambda heads, n: (sum(heads) / len(heads)).repeat(1, 1, n.nh),
    "sum_repeated": lambda heads, n: sum(heads).repeat(1, 1, n.nh),
    "not_moved": lambda heads, n: torch.stack(heads, dim=1).reshape(n.B, n.T, n.C),
    "along_tokens": lambda heads, n: torch.cat(heads, dim=1),
    "along_batch": lambda heads, n: torch.cat(heads, dim=0),
    "stacked_first": lambda heads, n: torch.stack(heads).reshape(n.B, n.T, n.C),
    "stacked_last": lambda heads, n: torch.stack(heads, dim=-1).reshape(n.B, n.T, n.C),
    "last_swapped": lambda heads, n: torch.stack(heads, dim=1).transpose(2, 3).reshape(n.B, n.T, n.C),
    "ends_swapped": lambda heads, n: torch.stack(heads, dim=1).transpose(1, 3).reshape(n.B, n.T, n.C),
    "batch_viewed": lambda heads, n: torch.cat(heads).view(n.B, n.nh, n.T, n.hd).transpose(1, 2).reshape(n.B, n.T, n.C),
    "tokens_first": lambda heads, n: torch.stack(heads).transpose(0, 2).reshape(n.B, n.T, n.C),
    "batch_swapped": lambda heads, n: torch.stack(heads).transpose(1, 2).reshape(n.B, n.T, n.C),
    "viewed": lambda heads, n: torch.stack(heads, dim=1).transpose(1, 2).view(n.B, n.T, n.C),
    "viewed_permuted": lambda heads, n: torch.stack(heads).permute(1, 2, 0, 3).view(n.B, n.T, n.C),
}

PROJECTIONS = {
    "right": lambda out, w: out @ w.mT,
    "missing": lambda out, w: out,
    "transposed": lambda out, w: out @ w,
    "bias": lambda out, w: out @ w.mT + 1,
    "bias_sized": lambda out, w: F.linear(out, w, w.new_ones(len(w))),
    "before": lambda out, w: out,  # see `make`: applied to x
}

VALUES = {"v": 2, "k": 1, "q": 0, "x": 3}

CASTS = {
    "follows": lambda z: z,
    "float": lambda z: z.float(),
    "double": lambda z: z.double(),
    "half": lambda z: z.half(),
    "bfloat16": lambda z: z.bfloat16(),
}

DEVICES = {
    "follows": lambda z: z,
    "cpu": lambda z: z.cpu(),
    "filled": lambda z: torch.zeros(z.shape, dtype=z.dtype).copy_(z),
    "added": lambda z: z + torch.zeros(z.shape, dtype=z.dtype),
    "multiplied": lambda z: z @ torch.eye(z.shape[-1], dtype=z.dtype),
}

MUTATIONS = {
    "never": lambda mha, x: None,
    "x_scaled": lambda mha, x: x.detach().mul_(2),
    "x_swapped": lambda mha, x: x.transpose_(1, 2),
    "x_first_zeroed": lambda mha, x: x.detach()[:, 0].zero_(),
    "qkv_scaled": lambda mha, x: mha.qkv.weight.data.div_(mha.head_dim**0.5),
    "q_scaled": lambda mha, x: mha.qkv.weight.data[: x.shape[-1]].div_(mha.head_dim**0.5),
    "proj_turned": lambda mha, x: mha.proj.weight.data.copy_(mha.proj.weight.data.mT.clone()),
    "proj_zeroed": lambda mha, x: mha.proj.weight.data.zero_(),
}

RETURNS = {
    "tensor": lambda out, heads: out,
    "tuple": lambda out, heads: (out, heads),
    "heads": lambda out, heads: heads,
    "list": lambda out, heads: out.tolist(),
    "numpy": lambda out, heads: out.detach().cpu().numpy(),
    "nothing": lambda out, heads: None,
}


def make(
    *,
    scale="sqrt_hd",
    softmax="keys",
    mask="causal",
    mask_size=None,
    order=(0, 1, 2),
    cut="rows",
    untransposed=(),
    split=("blocks", "blocks", "blocks"),
    join="side_by_side",
    values="v",
    proj="right",
    dropout="none",
    layers="given",
    gradient="flows",
    mutates="never",
    dtype="follows",
    device="follows",
    sizes=None,
    returns="tensor",
    signature="right",
):
    """The exercise's names, with these faults; the defaults are right."""

    def mha_by_loop(mha, x):
        n = _sizes(mha, x, sizes)
        given, w_qkv, w_proj = x, *_weights(mha, n, layers, gradient)
        x = given.detach() if gradient == "x" else given
        x = _in_dtype(x, dtype)
        source = x @ w_proj.mT if proj == "before" else x
        parts = [
            (source.detach() if gradient == f"x_{name}" else source) @ (w if i in untransposed else w.mT)
            for i, (name, w) in enumerate(zip("qkv", CUTS[cut](w_qkv, n), strict=True))
        ]
        q, k, v = (parts[i] for i in order)
        v = (q, k, v, x)[VALUES[values]]
        q, k, v = (z.detach() if name in gradient.split("+") else z for name, z in zip("qkv", (q, k, v), strict=True))
        dealt = [SPLITS[way](z, n) for way, z in zip(split, (q, k, v), strict=True)]
        heads = [
            _attend(*qkv, n, scale, softmax, mask, mask_size, dropout, gradient, device)
            for qkv in zip(*dealt, strict=True)
        ]
        out = PROJECTIONS[proj](_dropped(JOINS[join](heads, n), dropout == "output"), w_proj)
        out = out.detach() if gradient == "out" else out
        MUTATIONS[mutates](mha, given)
        if device != "mask":
            out = DEVICES[device](out)
        return RETURNS[returns](CASTS[dtype](out) if dtype in CASTS else out, heads)

    return _named(signature, torch.no_grad()(mha_by_loop) if gradient == "no_grad" else mha_by_loop)


def _sizes(mha, x, fixed):
    """The sizes, some of them fixed."""
    fixed = fixed or {}
    B, T, C = (fixed.get(name, size) for name, size in zip("BTC", x.shape, strict=True))
    nh = fixed.get("loops", fixed.get("nh", mha.n_head))
    hd = fixed.get("hd", C // nh if {"nh", "C"} & fixed.keys() else mha.head_dim)
    return SimpleNamespace(B=B, T=T, C=C, nh=nh, hd=hd)


def _weights(mha, n, layers, gradient):
    """The two weights, or others in their place."""
    w_qkv, w_proj = mha.qkv.weight, mha.proj.weight
    if layers in ("new_qkv", "new"):
        w_qkv = nn.Linear(n.C, 3 * n.C, bias=False).to(w_qkv).weight
    if layers in ("new_proj", "new"):
        w_proj = nn.Linear(n.C, n.C, bias=False).to(w_proj).weight
    return (
        w_qkv.data if gradient in ("qkv_weight", "weights") else w_qkv,
        w_proj.data if gradient in ("proj_weight", "weights") else w_proj,
    )


def _attend(q, k, v, n, scale, softmax, mask, mask_size, dropout, gradient, device):
    """One head."""
    divisor = SCALES[scale](n) if isinstance(scale, str) else scale
    scores = _dropped(q @ k.mT / divisor, dropout == "scores")
    scores = scores.detach() if gradient == "scores" else scores
    side = mask_size or (n.T if q.dim() == 3 else q.shape[-2])
    hidden = torch.ones(side, side, dtype=torch.bool, device=None if device == "mask" else q.device).triu(1)
    if mask == "sdpa_inverted":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=hidden, scale=1 / divisor)
    if isinstance(mask, float):
        scores = scores.masked_fill(hidden, mask)
    elif isinstance(mask, tuple):
        scores = scores + hidden.to(scores.dtype) * mask[1]
    elif mask in MASKS:
        scores = MASKS[mask](scores, hidden)
    weights = SOFTMAXES[softmax](scores)
    if mask in AFTER:
        weights = AFTER[mask](weights, hidden)
    weights = weights / math.sqrt(n.hd) if scale == "after_softmax" else weights
    weights = weights.detach() if gradient == "attention" else weights
    return _dropped(weights, dropout == "weights") @ v


def _dropped(z, active):
    return F.dropout(z, 0.1) if active else z


def _in_dtype(x, dtype):
    """x, or x in a dtype that its weights need not have."""
    return {"input_float": x.float(), "through_half": x.half().to(x.dtype), "filled": _filled(x)}.get(dtype, x)


def _filled(x):
    return torch.zeros(x.shape, device=x.device) + x.float()


def _blocks(n):
    """1 where the output and the input channel belong to the same head."""
    head = torch.arange(n.C) // n.hd
    return head[:, None] == head[None, :]


def _beyond_first(hidden):
    """True in every row but the first."""
    return torch.arange(len(hidden), device=hidden.device)[:, None] > 0


def _named(signature, right):
    """The function as a student may have declared it."""

    def calls_the_box(mha, x):
        return mha(x)

    declared = {
        "right": {"mha_by_loop": right},
        "swapped": {"mha_by_loop": lambda x, mha: right(mha, x)},
        "takes_heads": {"mha_by_loop": lambda mha, x, n_head: right(mha, x)},
        "takes_x": {"mha_by_loop": lambda x: x},
        "takes_weights": {"mha_by_loop": lambda qkv, proj, x, n_head: x},
        "missing": {"mha_loop": right},
        "a_value": {"mha_by_loop": None},
        "calls_the_box": {"mha_by_loop": calls_the_box},
    }
    return declared[signature]


def _each(misconception, knob, *ways):
    return tuple((misconception, {knob: way}) for way in ways)


_SOME = [tuple(i for i in range(3) if i in kept) for kept in ({2}, {0, 1}, {0}, {1}, {0, 2}, {1, 2})]


def _split_of(which, way):
    return tuple(way if i in which else "blocks" for i in range(3))


def _all_split(way):
    return (way, way, way)


_CONSTANTS = (8.0, 64.0, 4.0, 2.0, 16.0, 32.0, 0.125, 0.5, 0.25, 10.0, 3.0, 5.0, 6.0, 12.0, 128.0, 512.0, 768.0, 100.0)
_ROOTS = (2, 3, 8, 10, 12, 32, 128, 512, 768)

WEAK = (-10.0, -5.0, -2.0, -3.0, -4.0, -8.0, -6.0, -7.0, -9.0, -12.0, -1.0)  # −1 added: mask_added

MUTANTS = (
    *_each("scale_sqrt_c", "scale", "sqrt_c"),
    *_each("scale_missing", "scale", "missing"),
    *_each("scale_no_sqrt", "scale", "no_sqrt"),
    *_each("scale_twice", "scale", "no_sqrt"),
    *_each("mask_missing", "mask", "missing"),
    *_each("proj_missing", "proj", "missing"),
    *_each("proj_transposed", "proj", "transposed"),
    ("weight_not_transposed", {"untransposed": (0, 1, 2)}),
    ("qkv_packed_per_head", {"cut": "packed"}),
    *(("qkv_order", {"order": p}) for p in ((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1))),
    *_each("scale_multiplied", "scale", "multiplied"),
    *_each("scale_after_softmax", "scale", "after_softmax"),
    *_each("scale_sqrt_heads", "scale", "sqrt_heads"),
    *_each("scale_sqrt_tokens", "scale", "sqrt_tokens"),
    *_each("softmax_query_axis", "softmax", "queries"),
    *_each("mask_after_softmax", "mask", "after_softmax", "after_softmax_reversed"),
    *_each("mask_reversed", "mask", "reversed", "reversed_strict", "reversed_strict_finite"),
    *_each("mask_excludes_self", "mask", "excludes_self", "excludes_self_finite", "excludes_self_added"),
    *_each("mask_excludes_self", "mask", "excludes_self_later", "excludes_self_zeroed", "excludes_self_by_hand"),
    *_each("mask_peeks_one", "mask", "peeks_one", "peeks_two"),
    *_each("mask_zero_fill", "mask", 0.0, 1e-9, 1e-6, -1e-9),
    *_each("mask_weak_fill", "mask", *WEAK, *(("plus", fill) for fill in WEAK[:-1])),
    *_each("mask_plus_inf", "mask", "plus_inf", "plus_large"),
    *_each(
        "mask_nan",
        "mask",
        "nan_product",
        "nan_scaled",
        "nan_visible",
        "nan_after",
        "nan_after_product",
        "nan_after_and_sum",
    ),
    *_each("mask_added", "mask", "added", "added_hidden", "subtracted_hidden", "subtracted"),
    *_each("mask_sdpa_inverted", "mask", "sdpa_inverted"),
    *_each("softmax_wrong_axis", "softmax", "batch", "all_of_a_sequence", "all"),
    *(
        ("softmax_wrong_axis", {"softmax": way, "mask": "causal_finite"})
        for way in ("batch", "all_of_a_sequence", "all")
    ),
    ("softmax_query_axis", {"softmax": "queries", "mask": "causal_finite"}),
    *_each("softmax_missing", "softmax", "missing", "divided"),
    *(
        ("softmax_missing", {"softmax": way, "mask": mask})
        for mask in (0.0, "after_softmax", "missing")
        for way in ("missing", "divided", "divided_by_size", "divided_by_tokens", "exp_only")
    ),
    *_each("softmax_missing", "softmax", "divided_by_size", "divided_by_tokens", "exp_only", "log", "sigmoid"),
    *_each("values_wrong_source", "values", "k", "x", "q"),
    ("wrong_view_both", {"split": _all_split("straight"), "join": "not_moved"}),
    ("wrong_view", {"split": _all_split("straight")}),
    *(("wrong_view_values", {"split": _split_of(which, "straight")}) for which in _SOME),
    ("wrong_view", {"split": _all_split("straight_after_swap")}),
    *_each("merge_no_transpose", "join", "not_moved", "along_tokens"),
    ("heads_interleaved", {"split": _all_split("interleaved")}),
    ("heads_interleaved", {"split": _all_split("interleaved"), "join": "stacked_last"}),
    *(("heads_interleaved", {"split": _split_of(which, "interleaved")}) for which in _SOME),
    *_each("heads_interleaved", "join", "stacked_last"),
    *_each("merge_wrong_axes", "join", "stacked_last", "last_swapped", "ends_swapped", "batch_swapped", "tokens_first"),
    *_each("heads_reversed", "join", "reversed", "rolled", "rolled_back"),
    *_each("heads_averaged", "join", "mean", "sum", "mean_repeated", "sum_repeated"),
    ("heads_missing_transpose", {"split": _all_split("not_moved")}),
    ("heads_missing_transpose", {"split": _all_split("not_moved"), "mask": "missing"}),
    ("heads_missing_transpose", {"split": _all_split("not_moved_indexed")}),
    ("heads_missing_transpose", {"split": _all_split("not_moved_indexed"), "mask": "missing"}),
    ("heads_mix_batch", {"split": _all_split("mixed")}),
    ("heads_mix_batch", {"split": _all_split("mixed"), "join": "stacked_first"}),
    ("heads_mix_batch", {"split": _all_split("mixed_turned")}),
    ("heads_mix_batch", {"split": _all_split("batch_indexed")}),
    *_each("heads_mix_batch", "join", "stacked_first", "along_batch", "batch_swapped", "batch_viewed"),
    *(("weight_not_transposed", {"untransposed": which}) for which in _SOME),
    *_each("weight_not_transposed", "cut", "columns_turned", "turned_then_viewed_turned"),
    *_each("qkv_packed_per_head", "cut", "packed_last", "packed_interleaved"),
    ("qkv_sliced_by_columns", {"untransposed": (0, 1, 2)}),
    *_each(
        "qkv_sliced_by_columns", "cut", "columns", "columns_turned", "turned_then_viewed", "turned_then_viewed_turned"
    ),
    *_each("qkv_sliced_by_columns", "cut", "columns_every_third", "columns_every_third_turned", "block_diagonal"),
    *_each("qkv_sliced_by_columns", "cut", "columns_chunked", "columns_sliced", "columns_whole"),
    *_each("view_not_contiguous", "join", "viewed", "viewed_permuted"),
    *_each("mask_not_sliced", "mask_size", 1024, 8, 16, 64, 128),
    *_each("scale_constant", "scale", *_CONSTANTS, *(math.sqrt(root) for root in _ROOTS)),
    *_each("scale_sqrt_c", "scale", "sqrt_3c"),
    *_each("scale_no_sqrt", "scale", "no_sqrt_c"),
    *_each("scale_multiplied", "scale", "multiplied_hd", "multiplied_sqrt_c"),
    *_each("proj_bias", "proj", "bias", "bias_sized"),
    *_each("hard_coded_shape", "sizes", {"nh": 4}, {"hd": 16}, {"hd": 64}, {"C": 64}, {"T": 8}, {"nh": 4, "hd": 16}),
    *_each(
        "hard_coded_shape",
        "sizes",
        {"nh": 2},
        {"nh": 3},
        {"nh": 8},
        {"nh": 12},
        {"hd": 4},
        {"hd": 8},
        {"C": 12},
    ),
    *_each("hard_coded_shape", "sizes", {"T": 5}, {"T": 3}, {"T": 8, "C": 64}, {"T": 1024}),
    *_each("hard_coded_shape", "sizes", *({"loops": n} for n in (4, 2, 3, 8, 12))),
    *(("hard_coded_shape", {"split": _all_split("viewed"), "sizes": {"nh": nh}}) for nh in (4, 2, 8, 12, 6, 3)),
    *(("hard_coded_shape", {"split": _all_split("viewed"), "sizes": {"hd": hd}}) for hd in (64, 16)),
    *(("hard_coded_shape", {"split": _all_split("straight"), "sizes": {"B": B}}) for B in (2, 1)),
    *_each("gradient_cut", "gradient", "qkv_weight", "weights", "no_grad", "x", "proj_weight", "out"),
    *_each("gradient_cut", "gradient", "scores", "attention", "q", "k", "v", "q+k", "k+v", "q+k+v"),
    *_each("gradient_cut", "gradient", "x_q", "x_k", "x_v"),
    *_each("params_not_registered", "layers", "new_qkv", "new_proj", "new"),
    *_each("dropout_always_on", "dropout", "weights", "output", "scores"),
    *_each("input_mutated", "mutates", *(way for way in MUTATIONS if way != "never")),
    *_each("hard_coded_dtype", "dtype", "float", "double", "half", "bfloat16", "input_float", "filled"),
    *_each("hard_coded_device", "device", "mask", "cpu", "filled", "added", "multiplied"),
    *_each("interface", "returns", "tuple", "heads", "list", "numpy", "nothing"),
    *_each("interface", "signature", "swapped", "takes_heads", "takes_x", "takes_weights", "missing", "a_value"),
)
