"""The wrong ways to attend on two paths and to compare them.

A knob of forward holds on both paths; with `flash_` or `manual_` before its name, on that path alone.
"""

import torch
import torch.nn.functional as F

from manyheads.checks import edit

from ._attention import INF, MERGES, ORDERS, WEAK, lower
from ._attention_module import CUTTERS, OF_FORWARD, OF_INIT, Attention, by_sdpa
from ._attention_mutants import ATTENTION_FAMILIES, CONSTANTS, PARTS, WRONG_VIEWS, Runs, each, named
from ._kept import Keeping
from ._masking import (
    HEADS_NOT_JOINED,
    KEYS_NOT_TRANSPOSED,
    PRECEDENCE,
    SCALE_IDS,
    SCALES_TRIED,
    dropped_in_place,
    known,
)


def filled(hidden, value):
    return torch.zeros(hidden.shape, device=hidden.device).masked_fill(hidden, value)


# Masks for the fused function: seen (T, T), True for the present and the past -> attn_mask. There are "causal", its own
# flag, and "missing" besides.
FAST_MASKS = {
    "given": lambda seen: seen,
    "made": lambda seen: seen.clone(),
    "inverted": lambda seen: ~seen,
    "reversed_keeps_self": lambda seen: seen.mT,
    "excludes_self": lambda seen: seen.tril(-1),
    "peeks_one": lambda seen: lower(len(seen), 1).to(seen.device),
    "peeks_two": lambda seen: lower(len(seen), 2).to(seen.device),
    "added": lambda seen: seen.float(),
    "added_future": lambda seen: (~seen).float(),
    "zero_fill": lambda seen: filled(seen, 0.0),
    "plus_inf": lambda seen: filled(~seen, INF),
    "plus_large": lambda seen: filled(~seen, 1e9),
    "nan_product": lambda seen: (~seen).float() * -INF,
    "nan_seen": lambda seen: seen.float() * -INF,
    "past_hidden": lambda seen: filled(seen, -INF),
    "past_hidden_finite": lambda seen: filled(seen, -1e9),
}
FAST_MASKS |= {f"plus_{f:g}": lambda seen, f=f: (~seen).float() * f for f in (*WEAK, -2.0, -3.0, -50.0)}


class TwoPaths(Attention):
    """The same, with a fast path: `flash_knobs` are those of a call on it, `manual_knobs` those of a call by hand."""

    flash_knobs = manual_knobs = None

    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__(n_embd, n_head, block_size, dropout)
        self.flash = self.chosen = {"always_true": True, "always_false": False}.get(self.knobs.flag, flash)

    def knobs_now(self):
        ways = {"at_construction": self.chosen, "ignored": True, "opposite": not self.flash}
        return self.flash_knobs if ways.get(self.knobs.flag, self.flash) else self.manual_knobs

    def gather(self, q, key, v, s, k):
        by_hand = k.fast == "written_out" or (k.fast == "written_out_to_train" and self.training)
        if k is self.manual_knobs or by_hand:
            return self.weigh(q, key, v, s, k)
        if k.fast == "in_blocks_of_queries":
            return torch.cat([self.weigh_row(q, key, v, t) for t in range(q.shape[2])], dim=2)
        if k.fast == "square_too":
            (q @ key.mT).softmax(-1)
        unmasked = k.fast_mask in ("causal", "missing")
        mask = None if unmasked else FAST_MASKS[k.fast_mask](self.mask_for(q, k.holder_in_use, s))
        if mask is not None and mask.dtype != torch.bool:
            mask = mask.to(q.dtype)
        p = {"ungated": self.p, "missing": 0.0, "weights_missing": 0.0}.get(k.dropout, self.p if self.training else 0.0)
        options = {"attn_mask": mask, "is_causal": k.fast_mask == "causal", "dropout_p": p, "scale": self.factor(s, k)}
        if k.fast == "math_kernel":
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                return F.scaled_dot_product_attention(q, key, v, **options)
        return F.scaled_dot_product_attention(q, key, v, **options)

    def weigh_row(self, q, key, v, t):
        weights = (q[:, :, t, None] @ key[:, :, : t + 1].mT * q.shape[-1] ** -0.5).softmax(-1)
        return self.drop(weights) @ v[:, :, : t + 1]

    def weigh(self, q, key, v, s, k):
        if k.written == "fused":
            return by_sdpa(self, q, key, v)
        if k.written == "fused_masked":
            seen, p = self.mask_for(q, "buffer", s), self.p if self.training else 0.0
            return F.scaled_dot_product_attention(q, key, v, attn_mask=seen, dropout_p=p)
        return super().weigh(q, key, v, s, k)


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
    if trace in ("float32", "float64"):
        module.to(getattr(torch, trace))
    if trace == "weights_zeroed":
        for p in module.parameters():
            p.data.zero_()
    if trace == "weights_scaled":
        for p in module.parameters():
            p.data.mul_(0.5)


BY_PATH = OF_FORWARD | {"fast_mask": "causal", "fast": "sdpa", "written": "out"}
ON_BOTH = OF_INIT | {"flag": "kept"}
COMPARING = {"measure": "max", "compared": "both", "trace": "none"}


def make(**knobs):
    """The exercise's names, with these faults."""
    by_path = {f"{path}_{name}": None for path in ("flash", "manual") for name in BY_PATH}
    k = known(knobs, BY_PATH | ON_BOTH | COMPARING | by_path)
    paths = {}
    for path in ("flash", "manual"):
        own = known({name: knobs.get(f"{path}_{name}", getattr(k, name)) for name in BY_PATH}, BY_PATH)
        if k.holder not in ("buffer", "parameter", "float_parameter", "bool_parameter", "attribute"):
            own.holder_in_use = k.holder
        paths[f"{path}_knobs"] = own
    cls = type("CausalSelfAttention", (Keeping, TwoPaths), {"knobs": k, **paths})
    compare = comparison(k.measure, k.compared, k.trace)
    return {"CausalSelfAttention": cls, "max_path_difference": compare}


def ways(id_, **knobs):
    """As `each`, with every combination three times: on both paths, by hand only, on the fast path only."""
    for _, chosen in each(id_, **knobs):
        for prefix in ("", "manual_", "flash_"):
            yield id_, {prefix + name: value for name, value in chosen.items()}


# On both paths, and on each.
SCALED = (
    "sqrt_c", "missing", "hd", "times_sqrt_hd", "sqrt_heads", "sqrt_tokens", "times_hd", "c", "sqrt_3c", "heads", "tokens",
    "sqrt_block", "three_times", *tuple(PRECEDENCE)[:2],
)  # fmt: skip
FAST_WEAK = (-10.0, -4.0, -5.0, -2.0, -3.0, -20.0, -50.0)  # −1 added: mask_added
NO_FLOAT = ("tensor", "list", "printed", "bool", "string")

MUTANTS = (
    *(("scale_twice", {f"{path}scale": "hd"}) for path in ("flash_", "manual_", "")),
    *(mutant for way in SCALED for mutant in ways(SCALE_IDS[way], scale=way)),
    ("scale_twice", {"flash_scale": "sqrt_c_and_hd"}),
    *each("scale_precedence", manual_scale=list(PRECEDENCE)[2:]),
    ("mask_missing", {"flash_fast_mask": "missing"}),
    ("mask_missing", {"manual_mask": "missing"}),
    ("mask_missing", {"mask": "missing", "fast_mask": "missing"}),
    *each("mask_sdpa_inverted", fast_mask=("inverted", "reversed_keeps_self")),
    ("mask_sdpa_inverted", {"fast_mask": "inverted", "mask": "reversed"}),
    *ways("wrong_view", split="straight"),
    *ways("wrong_view_both", split="straight", merge="straight"),
    *ways("merge_no_transpose", merge="straight"),
    *ways("qkv_order", cut=ORDERS),
    *ways("qkv_packed_per_head", cut="per_head"),
    *ways("proj_missing", proj="missing"),
    ("softmax_query_axis", {"softmax": "queries"}),
    ("softmax_query_axis", {"softmax_of": "keys_by_queries"}),
    ("mask_zero_fill", {"mask": "filled_0"}),
    ("mask_missing", {"fast_mask": "zero_fill"}),  # to scores without a mask zeros are added
    ("mask_zero_fill", {"mask": "filled_0", "fast_mask": "zero_fill"}),
    ("mask_after_softmax", {"mask": "missing", "late_mask": "zeroed"}),
    ("mask_reversed", {"mask": "reversed"}),
    ("mask_reversed", {"fast_mask": "past_hidden"}),
    ("mask_reversed", {"mask": "reversed", "fast_mask": "past_hidden"}),
    ("mask_reversed", {"fast_mask": "past_hidden_finite"}),
    ("mask_reversed", {"mask": "reversed_keeps_self", "fast_mask": "reversed_keeps_self"}),
    *each("mask_reversed", mask=("reversed_finite", "reversed_keeps_self", "reversed_past_only")),
    ("mask_reversed", {"mask": "missing", "late_mask": "upper"}),
    *each("mask_excludes_self", mask=("excludes_self", "excludes_self_finite", "excludes_self_but_first")),
    ("mask_excludes_self", {"mask": "excludes_self", "softmax": "as_numbers"}),
    ("mask_excludes_self", {"fast_mask": "excludes_self"}),
    ("mask_excludes_self", {"mask": "excludes_self", "fast_mask": "excludes_self"}),
    *each("mask_peeks_one", mask=("peeks_one", "peeks_two")),
    *each("mask_peeks_one", fast_mask=("peeks_one", "peeks_two")),
    ("mask_peeks_one", {"mask": "peeks_one", "fast_mask": "peeks_one"}),
    *each("mask_added", fast_mask=("added", "added_future")),
    *Runs.ADDED,
    ("mask_added", {"mask": "added", "fast_mask": "added"}),
    *Runs.FILLED,
    *each("mask_weak_fill", fast_mask=named("plus", FAST_WEAK)),
    *(("mask_weak_fill", {"mask": mask, "fast_mask": mask}) for mask in named("plus", FAST_WEAK)),
    *each("mask_plus_inf", mask=("plus_inf", "plus_large", "plus_inf_added")),
    *each("mask_plus_inf", fast_mask=("plus_inf", "plus_large")),
    *each("mask_nan", mask=("nan_product", "nan_scores_times", "nan_zero_times", "nan_seen")),
    *each("mask_nan", fast_mask=("nan_product", "nan_seen")),
    ("mask_nan", {"mask": "nan_product", "fast_mask": "nan_product"}),
    *each("mask_nan", mask="missing", late_mask=Runs.LATE_NAN),
    *ways("scale_wrong_axis", scale=("sqrt_batch", "sqrt_batch_and_heads")),
    *ways("scale_rounded", scale=("rounded_down", "rounded", "rounded_up")),
    *Runs.ROUNDED[3:],
    *each("scale_after_softmax", scale_place=("after_softmax", "both_sides", "output")),
    ("scale_after_softmax", {"scale_place": "after_softmax", "manual_scale": "sqrt_c"}),
    *ways("scale_constant", scale=CONSTANTS[:6]),
    *each("scale_constant", scale=CONSTANTS[6:]),
    *Runs.WRONG_AXES,
    *Runs.WRONG_AXES_FINITE,
    *Runs.NO_SOFTMAX,
    ("mask_not_sliced", {"holder": "whole"}),
    ("mask_not_sliced", {"holder": "whole", "fast_mask": "given"}),
    *Runs.NOT_SLICED,
    *each("mask_not_moved", holder=("attribute", "list")),
    *each("mask_not_moved", holder=("attribute", "list"), fast_mask="given"),
    *each("mask_is_parameter", holder=("parameter", "float_parameter", "bool_parameter")),
    *ways("context_unchecked", context="open", holder_in_use="made_in_forward"),
    *ways("context_unchecked", context="cut"),
    *Runs.WRONG_SIZES,
    *ways("wrong_view", split=WRONG_VIEWS[1:3]),
    *each("wrong_view", split=WRONG_VIEWS[3:]),
    *Runs.WRONG_CUTS,
    *ways("wrong_view_values", split="straight", split_of=PARTS),
    *each("wrong_view_values", split=WRONG_VIEWS[1], split_of=PARTS),
    *each("merge_wrong_axes", merge=[way for way in MERGES if way.startswith("axes")]),
    *each("merge_wrong_axes", flash_merge=("axes_(2, 3, 1)", "axes_(3, 2, 1)")),
    *each("merge_wrong_axes", manual_merge=("axes_(2, 3, 1)", "axes_(3, 2, 1)")),
    *ways("heads_interleaved", split="interleaved"),
    *ways("heads_interleaved", cut="heads_innermost"),
    ("heads_interleaved", {"split": "interleaved", "merge": "axes_(2, 3, 1)"}),
    ("heads_interleaved", {"cut": "heads_innermost", "merge": "axes_(2, 3, 1)"}),
    *each("heads_interleaved", split="interleaved", split_of=PARTS),
    *ways("heads_and_width_swapped", split="sizes_swapped"),
    *ways("scores_ignored", scale=0.0),
    ("scores_ignored", {"manual_scale": 0.0, "manual_cut_gradient": "scores"}),
    *ways("heads_missing_transpose", attend_over="heads"),
    *ways("heads_missing_transpose", attend_over="heads", merge=("straight", "sizes_of_transposed")),
    ("heads_missing_transpose", {"attend_over": "heads", "mask": "missing", "fast_mask": "missing"}),
    ("heads_missing_transpose", {"manual_attend_over": "heads", "manual_mask": "missing"}),
    ("heads_missing_transpose", {"flash_attend_over": "heads", "flash_fast_mask": "missing"}),
    *ways("heads_averaged", merge=("mean_repeated", "mean")),
    *each("heads_averaged", merge=("sum", "sum_repeated", "mean_interleaved", "sum_interleaved")),
    *each("heads_averaged", merge=("mean_padded", "sum_padded")),
    *ways("heads_reversed", merge="reversed"),
    *each("heads_reversed", merge=("rolled", "rolled_back")),
    *each("heads_averaged", manual_mix=("whole_mean", "whole_sum")),
    *Runs.WITH_THE_BATCH,
    *Runs.HEADS_ASTRAY,
    *each("heads_mix_batch", flash_merge=("batch_joined", "heads_from_batch", "batch_viewed")),
    *each("heads_mix_batch", manual_merge=("batch_joined", "heads_from_batch", "batch_viewed")),
    *each("merge_no_transpose", flash_merge=["heads_along_tokens"]),
    *each("merge_no_transpose", manual_merge=["heads_along_tokens"]),
    *Runs.PACKED,
    *ways("values_wrong_source", source=("v_is_k", "v_is_x", "v_is_q")),
    *ways("proj_transposed", proj="untransposed"),
    *ways("proj_twice", proj="twice"),
    *each("proj_bias", params=("both_biases", "proj_bias", "qkv_bias")),
    *ways("dropout_always_on", dropout="ungated"),
    *ways("dropout_always_on", dropout="output_functional"),
    *each("dropout_always_on", manual_dropout=("functional", "kept_training")),
    *ways("dropout_missing", dropout="missing"),
    *each("dropout_before_softmax", manual_dropout=("scores", "scores_before_mask")),
    *ways("dropout_on_output_only", dropout="weights_missing"),
    *ways("dropout_output_missing", output_dropout="missing"),
    *ways("dropout_extra", dropout="output_twice"),
    *each("dropout_rate_fixed", rate=("fixed", "fixed_weights", "fixed_output")),
    *Runs.STATE_KEPT,
    *each("state_kept", kept=("rate", "rate_of_weights", "rate_of_output", "awake")),
    *ways("view_not_contiguous", merge=("view", "view_after_permute", "contiguous_too_early")),
    ("super_init_missing", {"awake": False}),
    *each("divisibility_unchecked", divisibility=("open", "of_block")),
    *ways("hard_coded_dtype", entrance=("float32", "float64", "half")),
    *ways("hard_coded_dtype", returned="float32"),
    *Runs.PARAMS,
    *each("gradient_cut", cut_gradient=[place for place in CUTTERS if place not in ("no", "scores", "weights")]),
    *each("gradient_cut", manual_cut_gradient=[place for place in CUTTERS if place != "no"]),
    *each("gradient_cut", flash_cut_gradient=("q", "k", "v", "x", "W", "y", "out")),
    *ways("input_mutated", entrance=("zeroed", "overwritten", "residual")),
    ("input_mutated", {"entrance": "scaled"}),
    *Runs.HARD_CODED,
    ("delegated", {"fast": "written_out"}),
    *each("delegated", written=("fused", "fused_masked")),
    *each("delegated", fast=("in_blocks_of_queries", "written_out_to_train")),
    *each("materialised", fast=("square_too", "math_kernel")),
    ("materialised", {"fast_mask": "made"}),
    ("delegated", {"fast": "written_out", "written": "fused"}),
    *each("delegated", flag=("opposite", "ignored")),
    *each("interface", flag=("at_construction", "always_true", "always_false")),
    *each("path_difference", compared=[way for way in COMPARED if way != "both"]),
    *each("path_difference", measure=[way for way in MEASURES if way not in ("max", *NO_FLOAT)]),
    *each("path_difference", trace=("eval", "manual", "fast", "training", "dropout_on", "recorded", "flipped")),
    *each("path_difference", trace=("wrong_mode", "weights_zeroed", "weights_scaled", "float32", "float64")),
    *each("interface", measure=NO_FLOAT),
    *each("interface", returned=("with_nothing", "tuple", "list", "nothing", "numpy")),
    ("interface", edit("flash: bool = True", "flash: bool = False")),
    KEYS_NOT_TRANSPOSED,
    HEADS_NOT_JOINED,
    dropped_in_place("attn_dropout"),
)

# With a number that nobody can list: in both paths, or in one of them.
FAMILIES = (
    *ATTENTION_FAMILIES,
    ("scale_constant", lambda c: {"manual_scale": c}, SCALES_TRIED),
    ("scale_constant", lambda c: {"flash_scale": c}, SCALES_TRIED),
)
