"""The wrong ways to write the loop over heads."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from manyheads.checks import edit

from ._attention import HEADS_LAST, MERGES, PROJS, SPLITS
from ._masking import INF, hidden, of_mask, visible, weighed
from ._mutants import FILLS_TRIED, LOW_FILLS, SCALES_TRIED, at, each, known
from ._scaling import PRECEDENCE, ROUNDED_SCORES, SCALES, scales
from ._scores import CASTS, DEVICES

# The stacked weight as w_q, w_k, w_v, each (out, in)
ROWS = {
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
DEALT = {way: lambda z, n, way=way: list(SPLITS[way](z, n).unbind(1)) for way in SPLITS} | {
    "blocks": lambda z, n: [z[..., h * n.hd : (h + 1) * n.hd] for h in range(n.nh)],
    "mixed_turned": lambda z, n: list(z.view(n.T, n.nh, n.B, n.hd).permute(1, 2, 0, 3)),
    "not_moved": lambda z, n: [z.view(n.B, n.T, n.nh, n.hd)],
    "not_moved_indexed": lambda z, n: [z.view(n.B, n.T, n.nh, n.hd)[:, h] for h in range(n.nh)],
    "batch_indexed": lambda z, n: [z.view(n.B, n.T, n.nh, n.hd).transpose(1, 2)[h] for h in range(n.nh)],
    "first": lambda z, n: [z[..., : n.hd]] * n.nh,
    "last": lambda z, n: [z[..., -n.hd :]] * n.nh,
}

# q, k and v, (B, T, C) each, as the heads of each, from all five axes at once (B, T, 3, nh, hd)
FIVE_AXES = {
    "three_heads_batch": lambda z, n: z.permute(0, 2, 3, 1, 4).reshape(3, n.nh, n.B, n.T, n.hd),
    "three_batch_heads": lambda z, n: z.permute(0, 2, 3, 1, 4).reshape(3, n.B, n.nh, n.T, n.hd).transpose(1, 2),
    "three_outermost": lambda z, n: z.reshape(3, n.B, n.T, n.nh, n.hd).permute(0, 3, 1, 2, 4),
}

# The heads' answers, (B, T, hd) each, to (B, T, C)
JOINS = {way: lambda heads, n, way=way: MERGES[way](torch.stack(heads, dim=1), n) for way in MERGES} | {
    "side_by_side": lambda heads, n: torch.cat(heads, dim=-1).flatten(2),
    "along_tokens": lambda heads, n: torch.cat(heads, dim=1),
    "view_permuted": lambda heads, n: torch.stack(heads).permute(1, 2, 0, 3).view(n.B, n.T, n.C),
}
PROJECTIONS = PROJS | {"bias": lambda out, w: out @ w.mT + 1}

RIGHT = {
    "scale": "sqrt_hd",  # a number: what the scores are divided by
    "rounded": "no",  # of ROUNDED_SCORES
    "softmax": "keys",
    "mask": "causal",  # as _masking.of_mask has it
    "mask_size": None,  # a number, batch, heads
    "order": (0, 1, 2), "cut": "rows", "untransposed": (),
    "sliced": False,  # the rows of each head are multiplied by themselves
    "split": ("blocks", "blocks", "blocks"), "five_axes": "none", "join": "side_by_side", "values": "v", "proj": "linear",
    "gradient": "flows",  # where it is cut
    "dtype": "follows", "device": "follows",
    "sizes": None,  # what is written in: B, T, C, nh, hd, loops
}  # fmt: skip


def make(**faults):
    """The exercise's names, with these faults."""
    knobs = known(faults, RIGHT)
    cut_at = knobs.gradient.split("+")

    def mha_by_loop(mha, x):
        n = _sizes(mha, x, knobs.sizes or {})
        w_qkv = mha.qkv.weight.data if knobs.gradient in ("qkv_weight", "weights") else mha.qkv.weight
        w_proj = mha.proj.weight.data if knobs.gradient in ("proj_weight", "weights") else mha.proj.weight
        x = _in_dtype(x.detach() if knobs.gradient == "x" else x, knobs.dtype)
        parts = [
            _times(
                x.detach() if knobs.gradient == f"x_{name}" else x, w, knobs.sliced and n.hd, i in knobs.untransposed
            )
            for i, (name, w) in enumerate(zip("qkv", ROWS[knobs.cut](w_qkv, n), strict=True))
        ]
        q, k, v = (parts[i] for i in knobs.order)
        v = {"q": q, "k": k, "v": v, "x": x}[knobs.values]
        qkv = (z.detach() if name in cut_at else z for name, z in zip("qkv", (q, k, v), strict=True))
        if knobs.five_axes == "none":
            dealt = [DEALT[way](z, n) for way, z in zip(knobs.split, qkv, strict=True)]
        else:
            five = torch.cat(list(qkv), dim=-1).view(n.B, n.T, 3, n.nh, n.hd)
            dealt = [list(part) for part in FIVE_AXES[knobs.five_axes](five, n)]
        heads = [_attend(*head, n, knobs) for head in zip(*dealt, strict=True)]
        out = PROJECTIONS[knobs.proj](JOINS[knobs.join](heads, n), w_proj)
        out = out.detach() if knobs.gradient == "out" else out
        return CASTS.get(knobs.dtype, CASTS["follows"])(DEVICES.get(knobs.device, DEVICES["follows"])(out))

    return {"mha_by_loop": torch.no_grad()(mha_by_loop) if knobs.gradient == "no_grad" else mha_by_loop}


def _sizes(mha, x, fixed):
    """The sizes, some of them fixed."""
    B, T, C = (fixed.get(name, size) for name, size in zip("BTC", x.shape, strict=True))
    nh = fixed.get("loops", fixed.get("nh", mha.n_head))
    hd = fixed.get("hd", C // nh if {"nh", "C"} & fixed.keys() else mha.head_dim)
    return SimpleNamespace(B=B, T=T, C=C, nh=nh, hd=hd)


def _times(x, weight, rows, as_stored):
    """x by a weight as it is stored, or turned over; by so many rows of it at a time, if that is a number."""
    pieces = weight.split(rows) if rows else [weight]
    return torch.cat([x @ (piece if as_stored else piece.mT) for piece in pieces], dim=-1)


def _attend(q, k, v, n, knobs):
    """One head."""
    (which, how), scale = of_mask(knobs.mask), knobs.scale
    divisor = scale if isinstance(scale, float) else 1.0 if scale == "after_softmax" else 1 / SCALES[scale](n)
    scores = ROUNDED_SCORES[knobs.rounded](q @ k.mT / divisor)
    scores = scores.detach() if knobs.gradient == "scores" else scores
    side = {"batch": n.B, "heads": n.nh}.get(knobs.mask_size, knobs.mask_size) or (n.T if q.dim() == 3 else q.shape[-2])
    seen = visible(which, side, None if knobs.device == "mask" else q.device)
    if how == "sdpa":
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=1 / divisor)
    weights = weighed(hidden(scores, seen, how), seen, how, knobs.softmax)
    weights = weights / math.sqrt(n.hd) if scale == "after_softmax" else weights
    weights = weights.detach() if knobs.gradient == "attention" else weights
    return weights @ v


def _in_dtype(x, dtype):
    """x, or x in a dtype that its weights need not have."""
    return {"input_float": x.float(), "through_half": x.half().to(x.dtype)}.get(dtype, x)


def _blocks(n):
    """1 where the output and the input channel belong to the same head."""
    head = torch.arange(n.C) // n.hd
    return head[:, None] == head[None, :]


_SOME = ((2,), (0, 1), (0,), (1,), (0, 2), (1, 2))  # of q, k and v


def _split(way, which=(0, 1, 2)):
    """How q, k and v are split: `which` of them in this way, the others well."""
    return tuple(way if i in which else "blocks" for i in range(3))


_CONSTANTS = (8.0, 64.0, 4.0, 2.0, 0.125, 3.0, 768.0)
_ROOTS = (2, 768)

_WEAK = (-10.0, -5.0, -12.0, -1.0)  # −1 added: mask_added
_AXES = ("batch", "sequence", "everything")
_SUMS = ("sum_of_sizes", "tokens", "exp")

# Texts of the reference, and what is written into before it returns.
DEF = "def mha_by_loop(mha: nn.Module, x: torch.Tensor)"
SCORES, OUT = "q @ k.transpose(1, 2) / math.sqrt(hd)", "return mha.proj(torch.cat(heads, dim=-1))"
NEW_QKV = "mha.qkv.weight.split", "nn.Linear(C, 3 * C, bias=False).to(x).weight.split"
NEW_PROJ = "mha.proj(", "nn.Linear(C, C, bias=False).to(x)("
CHANGES = (
    "x.detach().mul_(2)",
    "x.transpose_(1, 2)",
    "x.detach()[:, 0].zero_()",
    "mha.qkv.weight.data.div_(hd**0.5)",
    "mha.qkv.weight.data[:C].div_(hd**0.5)",
    "mha.proj.weight.data.copy_(mha.proj.weight.data.mT.clone())",
    "mha.proj.weight.data.zero_()",
)

MUTANTS = (
    *scales("sqrt_c", "missing"),
    ("scores_ignored", {"scale": math.inf}),
    *scales("hd"),
    ("scale_twice", {"scale": "hd"}),
    *scales(*PRECEDENCE),
    ("mask_missing", {"mask": "missing"}),
    ("proj_missing", {"proj": "missing"}),
    ("proj_transposed", {"proj": "untransposed"}),
    ("proj_twice", {"proj": "twice"}),
    ("weight_not_transposed", {"untransposed": (0, 1, 2)}),
    ("qkv_packed_per_head", {"cut": "packed"}),
    *each("qkv_order", order=((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1))),
    ("scale_multiplied", {"scale": "times_sqrt_hd"}),
    ("scale_after_softmax", {"scale": "after_softmax"}),
    *scales("sqrt_heads", "sqrt_tokens", "sqrt_batch", "rounded_down", "rounded", "rounded_up"),
    *each("scale_rounded", rounded=tuple(ROUNDED_SCORES)[1:]),
    *each("softmax_query_axis", softmax=("queries", "queries_by_hand")),
    *each("mask_after_softmax", mask=("after_softmax", ("reversed", "after_softmax"))),
    *each("mask_reversed", mask=("reversed", "inverted", ("inverted", -1e9))),
    *each("mask_excludes_self", mask=("excludes_self", ("excludes_self", -1e9), ("excludes_self", ("add", -1e9)))),
    *each("mask_excludes_self", mask=(("excludes_self", "zero_row"), "excludes_self_later", "excludes_self_but_first")),
    *each("mask_peeks_one", mask=("peeks_one", "peeks_two")),
    ("mask_zero_fill", {"mask": 0.0}),
    *each("mask_weak_fill", mask=(*_WEAK, *(("add", fill) for fill in _WEAK[:-1]), *LOW_FILLS)),
    *each("mask_plus_inf", mask=(INF, 1e9)),
    *each("mask_nan", mask=("nan_product", "nan_factor", "after_softmax_inf")),
    *each("mask_added", mask=("add_seen", "add_hidden")),
    ("mask_sdpa_inverted", {"mask": ("inverted", "sdpa")}),
    *each("softmax_wrong_axis", softmax=_AXES),
    ("softmax_wrong_axis", {"softmax": "batch", "mask": -1e9}),
    ("softmax_wrong_axis", {"softmax": "batch", "mask": "after_softmax"}),  # masked before it, too
    *each("softmax_missing", softmax=("missing", "sum")),
    *each("softmax_missing", softmax=("missing", "sum", *_SUMS), mask=0.0),
    *each("softmax_missing", softmax=("missing", "sum", *_SUMS), mask="after_softmax"),
    *each("softmax_missing", softmax=("missing", "sum", *_SUMS), mask="missing"),
    *each("softmax_missing", softmax=(*_SUMS, "exp_shifted", "log", "sigmoid")),
    *each("values_wrong_source", values=("k", "x", "q")),
    ("wrong_view_both", {"split": _split("straight"), "join": "straight"}),
    ("wrong_view", {"split": _split("straight")}),
    *each("wrong_view_values", split=[_split("straight", which) for which in _SOME]),
    ("wrong_view", {"split": _split("swapped_first")}),
    *each("merge_no_transpose", join=("straight", "along_tokens")),
    ("heads_interleaved", {"split": _split("interleaved")}),
    ("heads_interleaved", {"split": _split("interleaved"), "join": HEADS_LAST}),
    *each("heads_interleaved", split=[_split("interleaved", which) for which in _SOME]),
    *each("heads_and_width_swapped", scale=("sqrt_hd", "sqrt_heads"), split=[_split("sizes_swapped")]),
    ("heads_interleaved", {"join": HEADS_LAST}),
    *each("merge_wrong_axes", join=(HEADS_LAST, "axes_(0, 1, 3, 2)", "axes_(0, 3, 2, 1)")),
    *each("merge_wrong_axes", join=("axes_(1, 2, 0, 3)", "axes_(2, 0, 1, 3)")),
    *each("heads_reversed", join=("reversed", "rolled", "rolled_back")),
    ("heads_not_joined", edit("    return mha.proj", "        return mha.proj")),  # inside the loop
    *each("heads_averaged", join=("mean", "sum", "mean_repeated", "sum_repeated")),
    ("heads_missing_transpose", {"split": _split("not_moved")}),
    ("heads_missing_transpose", {"split": _split("not_moved"), "mask": "missing"}),
    ("heads_missing_transpose", {"split": _split("not_moved_indexed")}),
    ("heads_missing_transpose", {"split": _split("not_moved_indexed"), "mask": "missing"}),
    ("heads_mix_batch", {"split": _split("batch_after_heads")}),
    ("heads_mix_batch", {"split": _split("batch_after_heads"), "join": "axes_(1, 0, 2, 3)"}),
    *each("heads_mix_batch", split=(_split("mixed_turned"), _split("batch_indexed"))),
    *each("qkv_mix_batch", five_axes=tuple(FIVE_AXES)),
    ("heads_mix_batch", {"join": "axes_(1, 0, 2, 3)"}),
    *each("heads_mix_batch", join=("axes_(1, 2, 0, 3)", "heads_from_batch", "batch_viewed")),
    *each("weight_not_transposed", untransposed=_SOME),
    *each("weight_not_transposed", untransposed=((0, 1, 2), (0, 1)), sliced=True),
    ("weight_not_transposed", {"cut": "turned_then_viewed_turned"}),
    *each("qkv_packed_per_head", cut=("packed_last", "packed_interleaved")),
    ("heads_one_for_all", {"split": _split("first")}),
    ("qkv_sliced_by_columns", {"untransposed": (0, 1, 2)}),
    *each("qkv_sliced_by_columns", cut=("columns", "columns_turned")),
    *each("qkv_sliced_by_columns", cut=("turned_then_viewed", "turned_then_viewed_turned")),
    *each("qkv_sliced_by_columns", cut=("columns_every_third", "columns_every_third_turned", "block_diagonal")),
    *each("qkv_sliced_by_columns", cut=("columns_chunked", "columns_sliced", "columns_whole")),
    *each("view_not_contiguous", join=("view", "view_permuted")),
    *each("mask_not_sliced", mask_size=(1024, 8, 16, 64, 128)),
    *each("size_wrong_axis", mask_size=("batch", "heads")),
    ("size_wrong_axis", {"join": "sizes_of_transposed"}),
    *each("scale_constant", scale=(*_CONSTANTS, *(math.sqrt(root) for root in _ROOTS))),
    *scales("sqrt_3c", "c", "times_hd", "times_sqrt_c"),
    ("proj_bias", {"proj": "bias"}),
    *each("hard_coded_shape", sizes=({"nh": 4}, {"hd": 16}, {"hd": 64}, {"C": 64}, {"T": 8}, {"nh": 4, "hd": 16})),
    *each("hard_coded_shape", sizes=(*({"nh": n} for n in (2, 3, 8, 12)), {"hd": 4}, {"hd": 8}, {"C": 12})),
    *each("hard_coded_shape", sizes=({"T": 5}, {"T": 3}, {"T": 8, "C": 64}, {"T": 1024})),
    *each("hard_coded_shape", sizes=[{"loops": n} for n in (4, 2, 3, 8, 12)]),
    *each("hard_coded_shape", sizes=[{"nh": n} for n in (4, 2, 8, 12, 6, 3)], split=[_split("heads")]),
    *each("hard_coded_shape", sizes=({"hd": 64}, {"hd": 16}), split=[_split("heads")]),
    *each("hard_coded_shape", sizes=({"B": 2}, {"B": 1}), split=[_split("straight")]),
    *each("gradient_cut", gradient=("qkv_weight", "weights", "no_grad", "x", "proj_weight", "out")),
    *each("gradient_cut", gradient=("scores", "attention", "q", "k", "v", "q+k", "k+v", "q+k+v")),
    *each("gradient_cut", gradient=("x_q", "x_k", "x_v")),
    ("params_not_registered", edit(*NEW_QKV)),
    ("params_not_registered", edit(*NEW_PROJ)),
    ("params_not_registered", edit(*NEW_QKV, dict([NEW_PROJ]))),
    *at("scores.softmax(dim=-1)", ("dropout_always_on", "nn.functional.dropout(scores.softmax(dim=-1), 0.1)")),
    *at("torch.cat(heads, dim=-1)", ("dropout_always_on", "nn.functional.dropout(torch.cat(heads, dim=-1), 0.1)")),
    *at(SCORES, ("dropout_always_on", f"nn.functional.dropout({SCORES}, 0.1)")),
    *at(OUT, ("input_mutated", *(f"out = {OUT[7:]}\n    {change}\n    return out" for change in CHANGES))),
    *each("hard_coded_dtype", dtype=("float", "double", "half", "bfloat16", "input_float")),
    *each("hard_coded_device", device=("mask", "cpu", "multiplied")),
    *at(OUT, ("output_rounded", *(f"{OUT}.round(decimals={n})" for n in (4, 3, 2)))),
    *at(OUT, ("interface", f"{OUT}, heads", "return heads", f"{OUT}.detach().cpu().numpy()", "return None")),
    *at(DEF, ("interface", "def mha_by_loop(x, mha)", "def mha_by_loop(mha, x, n_head)", "def mha_by_loop(x)")),
    *at(DEF, ("interface", "def mha_by_loop(qkv, proj, x, n_head)", "def mha_loop(mha, x)")),
    ("keys_not_transposed", edit("q @ k.transpose(1, 2)", "q @ k")),
    ("heads_one_for_all", {"split": _split("last")}),
)

# With a number that nobody can list.
FAMILIES = (
    ("scale_constant", lambda c: {"scale": c}, SCALES_TRIED),
    ("mask_weak_fill", lambda c: {"mask": -c}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"mask": ("add", -c)}, FILLS_TRIED),
    ("mask_weak_fill", lambda c: {"mask": ("below", c)}, FILLS_TRIED),
)
