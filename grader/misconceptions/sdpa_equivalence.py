"""The wrong ways to attend on two paths and to compare them.

A knob of forward holds on both paths; with `flash_` or `manual_` before its name, on that path alone.
"""

import torch
import torch.nn.functional as F

from manyheads.checks import edit

from ._attention import HEADS_LAST, ORDERS, WRONG_AXES
from ._attention_module import CUTS_OF_GRADIENT, OF_FORWARD, OF_INIT, Attention, by_sdpa
from ._attention_mutants import ATTENTION_FAMILIES, CONSTANTS, PARTS, WRONG_VIEWS, Runs, added, each
from ._kept import Keeping
from ._masking import INF, VISIBLE, hidden, of_mask
from ._mutants import HEADS_NOT_JOINED, KEYS_NOT_TRANSPOSED, SCALES_TRIED, SUPER_INIT_LATE, dropped_in_place, known
from ._scaling import PRECEDENCE, SCALE_IDS, factor


def fast_mask(seen, mask):
    """attn_mask, from what may be seen: booleans, or numbers that are added."""
    if mask in ("given", "made"):
        return seen if mask == "given" else seen.clone()
    if mask in VISIBLE:
        return VISIBLE[mask](seen)
    which, how = of_mask(mask)
    return hidden(torch.zeros(seen.shape, device=seen.device), VISIBLE[which](seen), how)


class TwoPaths(Attention):
    """The same, with a fast path: `flash_knobs` are those of a call on it, `manual_knobs` those of a call by hand."""

    flash_knobs = manual_knobs = None

    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__(n_embd, n_head, block_size, dropout)
        self.flash = self.chosen = {"always_true": True, "always_false": False}.get(self.knobs.flag, flash)

    def knobs_now(self):
        ways = {"at_construction": self.chosen, "opposite": not self.flash}
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
        mask = None if unmasked else fast_mask(self.mask_for(q, k.holder_in_use, s), k.fast_mask)
        if mask is not None and mask.dtype != torch.bool:
            mask = mask.to(q.dtype)
        p = {"ungated": self.p, "missing": 0.0, "weights_missing": 0.0}.get(k.dropout, self.p if self.training else 0.0)
        options = {"attn_mask": mask, "is_causal": k.fast_mask == "causal", "dropout_p": p, "scale": factor(k.scale, s)}
        return F.scaled_dot_product_attention(q, key, v, **options)

    def weigh_row(self, q, key, v, t):
        weights = (q[:, :, t, None] @ key[:, :, : t + 1].mT * q.shape[-1] ** -0.5).softmax(-1)
        return self.drop(weights) @ v[:, :, : t + 1]

    def weigh(self, q, key, v, s, k):
        if k.written == "fused":
            return by_sdpa(self, q, key, v)
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
        with torch.set_grad_enabled(torch.is_grad_enabled() and trace == "recorded"):
            outputs = []
            for way in COMPARED[compared]:
                module.flash = flash if way is None else way
                outputs.append(module(x).detach())
        leave(module, flash, training, trace)
        return MEASURES[measure](*outputs)

    return max_path_difference


COMPARED = {
    "both": (True, False),
    "fast_twice": (True, True),
    "manual_twice": (False, False),
    "unflipped": (None, None),
}


def leave(module, flash, training, trace):
    if trace != "eval":
        module.train({"training": True, "wrong_mode": not training}.get(trace, training))
    module.flash = {"manual": module.flash, "fast": True, "flipped": not flash}.get(trace, flash)
    if trace in ("float32", "float64"):
        module.to(getattr(torch, trace))
    if trace == "weights_zeroed":
        for p in module.parameters():
            p.data.zero_()


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
        if k.holder not in ("buffer", "parameter", "float_parameter", "attribute"):
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
    "sqrt_block", "three_times", *PRECEDENCE[:2],
)  # fmt: skip
FAST_WEAK = (-10.0, -4.0, -5.0, -2.0, -3.0, -20.0, -50.0)  # −1 added: mask_added
NO_FLOAT = ("tensor", "list", "printed", "bool", "string")

MUTANTS = (
    *(("scale_twice", {f"{path}scale": "hd"}) for path in ("flash_", "manual_", "")),
    *(mutant for way in SCALED for mutant in ways(SCALE_IDS[way], scale=way)),
    ("scale_twice", {"flash_scale": "sqrt_c_and_hd"}),
    *each("scale_precedence", manual_scale=PRECEDENCE[2:]),
    ("mask_missing", {"flash_fast_mask": "missing"}),
    ("mask_missing", {"manual_mask": "missing"}),
    ("mask_missing", {"mask": "missing", "fast_mask": "missing"}),
    *each("mask_sdpa_inverted", fast_mask=("inverted", "reversed")),
    ("mask_sdpa_inverted", {"fast_mask": "inverted", "mask": "inverted"}),
    *ways("wrong_view", split="straight"),
    *ways("wrong_view_both", split="straight", merge="straight"),
    *ways("merge_no_transpose", merge="straight"),
    *ways("qkv_order", cut=ORDERS),
    *ways("qkv_packed_per_head", cut="per_head"),
    *ways("proj_missing", proj="missing"),
    ("softmax_query_axis", {"softmax": "queries"}),
    ("softmax_query_axis", {"softmax_of": "keys_by_queries"}),
    ("mask_zero_fill", {"mask": 0.0}),
    ("mask_missing", {"fast_mask": 0.0}),  # to scores without a mask zeros are added
    ("mask_zero_fill", {"mask": 0.0, "fast_mask": 0.0}),
    ("mask_after_softmax", {"mask": "after_softmax"}),
    ("mask_reversed", {"mask": "inverted"}),
    ("mask_reversed", {"fast_mask": ("inverted", -INF)}),
    ("mask_reversed", {"mask": "inverted", "fast_mask": ("inverted", -INF)}),
    ("mask_reversed", {"fast_mask": ("inverted", -1e9)}),
    ("mask_reversed", {"mask": "reversed", "fast_mask": "reversed"}),
    *each("mask_reversed", mask=(("inverted", -1e9), "reversed")),
    ("mask_reversed", {"mask": ("reversed", "after_softmax")}),
    *each("mask_excludes_self", mask=("excludes_self", ("excludes_self", -1e9), "excludes_self_but_first")),
    ("mask_excludes_self", {"mask": "excludes_self", "softmax": "as_numbers"}),
    ("mask_excludes_self", {"fast_mask": "excludes_self"}),
    ("mask_excludes_self", {"mask": "excludes_self", "fast_mask": "excludes_self"}),
    *each("mask_peeks_one", mask=("peeks_one", "peeks_two")),
    *each("mask_peeks_one", fast_mask=("peeks_one", "peeks_two")),
    ("mask_peeks_one", {"mask": "peeks_one", "fast_mask": "peeks_one"}),
    *each("mask_added", fast_mask=("add_seen", "add_hidden")),
    *Runs.ADDED,
    ("mask_added", {"mask": "add_seen", "fast_mask": "add_seen"}),
    *Runs.FILLED,
    *each("mask_weak_fill", fast_mask=added(*FAST_WEAK)),
    *(("mask_weak_fill", {"mask": mask, "fast_mask": mask}) for mask in added(*FAST_WEAK)),
    *each("mask_plus_inf", mask=(INF, 1e9)),
    *each("mask_plus_inf", fast_mask=(INF, 1e9)),
    *each("mask_nan", mask=("nan_product", "nan_factor", "nan_zero_factor")),
    *each("mask_nan", fast_mask=("nan_product", ("inverted", "nan_product"))),
    ("mask_nan", {"mask": "nan_product", "fast_mask": "nan_product"}),
    *each("mask_nan", mask=Runs.LATE_NAN),
    *ways("scale_wrong_axis", scale=("sqrt_batch", "sqrt_batch_and_heads")),
    *ways("scale_rounded", scale=("rounded_down", "rounded", "rounded_up")),
    *Runs.ROUNDED[3:],
    *each("scale_after_softmax", scaled=("weights", "scores+weights")),
    ("scale_after_softmax", {"scaled": "weights", "manual_scale": "sqrt_c"}),
    *ways("scale_constant", scale=CONSTANTS[:6]),
    *each("scale_constant", scale=CONSTANTS[6:]),
    *Runs.WRONG_AXES,
    *Runs.WRONG_AXES_FINITE,
    *Runs.NO_SOFTMAX,
    ("mask_not_sliced", {"holder": "whole"}),
    ("mask_not_sliced", {"holder": "whole", "fast_mask": "given"}),
    *Runs.NOT_SLICED,
    ("mask_not_moved", {"holder": "attribute"}),
    ("mask_not_moved", {"holder": "attribute", "fast_mask": "given"}),
    *each("mask_is_parameter", holder=("parameter", "float_parameter")),
    *ways("context_unchecked", context="open", holder_in_use="made_in_forward"),
    *ways("context_unchecked", context="cut"),
    *Runs.WRONG_SIZES,
    *ways("wrong_view", split=WRONG_VIEWS[1:3]),
    *each("wrong_view", split=WRONG_VIEWS[3:]),
    *Runs.WRONG_CUTS,
    *ways("wrong_view_values", split="straight", split_of=PARTS),
    *each("wrong_view_values", split=WRONG_VIEWS[1], split_of=PARTS),
    *each("merge_wrong_axes", merge=WRONG_AXES),
    *each("merge_wrong_axes", flash_merge=(HEADS_LAST, "axes_(0, 3, 2, 1)")),
    *each("merge_wrong_axes", manual_merge=(HEADS_LAST, "axes_(0, 3, 2, 1)")),
    *ways("heads_interleaved", split="interleaved"),
    ("heads_interleaved", {"split": "interleaved", "merge": HEADS_LAST}),
    *each("heads_interleaved", split="interleaved", split_of=PARTS),
    *ways("heads_and_width_swapped", split="sizes_swapped"),
    *ways("scores_ignored", scale=0.0),
    ("scores_ignored", {"manual_scale": 0.0, "manual_cut_gradient": ("scores",)}),
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
    *each("heads_mix_batch", flash_merge=("axes_(1, 2, 0, 3)", "heads_from_batch", "batch_viewed")),
    *each("heads_mix_batch", manual_merge=("axes_(1, 2, 0, 3)", "heads_from_batch", "batch_viewed")),
    *Runs.PACKED,
    *ways("values_wrong_source", source=("v_is_k", "v_is_x", "v_is_q")),
    *ways("proj_transposed", proj="untransposed"),
    *ways("proj_twice", proj="twice"),
    *each("proj_bias", params=("both_biases", "proj_bias", "qkv_bias")),
    *ways("dropout_always_on", dropout=("ungated", "output_functional")),
    *each("dropout_always_on", manual_dropout=("functional", "kept_training")),
    *ways("dropout_missing", dropout="missing"),
    ("dropout_before_softmax", {"manual_dropout": "scores"}),
    *ways("dropout_on_output_only", dropout="weights_missing"),
    *ways("dropout_output_missing", output_dropout="missing"),
    *ways("dropout_extra", dropout="output_twice"),
    *each("dropout_rate_fixed", rate=("fixed", "fixed_weights", "fixed_output")),
    *Runs.STATE_KEPT,
    ("state_kept", {"kept": "rate"}),
    *ways("view_not_contiguous", merge=("view", "view_after_permute", "contiguous_too_early")),
    SUPER_INIT_LATE,
    *each("divisibility_unchecked", divisibility=("open", "of_block")),
    *ways("hard_coded_dtype", entrance=("float32", "float64", "half")),
    *ways("hard_coded_dtype", returned="float32"),
    *Runs.PARAMS,
    *each("gradient_cut", cut_gradient=[cut for cut in CUTS_OF_GRADIENT if cut not in (("scores",), ("weights",))]),
    *each("gradient_cut", manual_cut_gradient=CUTS_OF_GRADIENT),
    *each("gradient_cut", flash_cut_gradient=[(place,) for place in ("q", "k", "v", "x", "W", "y", "out")]),
    *ways("input_mutated", entrance=("zeroed", "overwritten", "residual")),
    ("input_mutated", {"entrance": "scaled"}),
    *Runs.HARD_CODED,
    ("delegated", {"fast": "written_out"}),
    ("delegated", {"written": "fused"}),
    *each("delegated", fast=("in_blocks_of_queries", "written_out_to_train")),
    ("materialised", {"fast": "square_too"}),
    ("materialised", {"fast_mask": "made"}),
    ("delegated", {"flag": "opposite"}),
    *each("interface", flag=("at_construction", "always_true", "always_false")),
    *each("path_difference", compared=[way for way in COMPARED if way != "both"]),
    *each("path_difference", measure=[way for way in MEASURES if way not in ("max", *NO_FLOAT)]),
    *each("path_difference", trace=("eval", "manual", "fast", "training", "dropout_on", "recorded", "flipped")),
    *each("path_difference", trace=("wrong_mode", "weights_zeroed", "float32", "float64")),
    *each("interface", measure=NO_FLOAT),
    *each("interface", returned=("with_nothing", "list", "nothing", "numpy")),
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
