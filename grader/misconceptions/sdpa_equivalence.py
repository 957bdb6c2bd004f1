"""The wrong ways to attend on two paths and to compare them.

A knob of forward holds on both paths; with `flash_` or `manual_` before its name, on that path
alone.
"""

import operator

import torch
import torch.nn.functional as F

from manyheads.checks import Mutant

from . import _module_edits as edits
from ._attention import HEADS_LAST, ORDERS, WRONG_AXES
from ._attention_module import CUTS_OF_GRADIENT, KNOBS, Attention
from ._attention_mutants import ATTENTION_FAMILIES, CONSTANTS, OUT_OF_ORDER, PARTS, Runs, added
from ._kept import Keeping
from ._layers import KNOBS as LAYERS
from ._layers import Layered
from ._masking import INF, VISIBLE, hidden, of_mask
from ._mutants import (
    SCALES_TRIED,
    SCORES_WRONG_SOURCE,
    SUPER_INIT_LATE,
    complete_knobs,
    mutants,
    values_transposed,
    variants,
)
from ._scaling import PRECEDENCE, SCALE_IDS, factor


def fast_mask(visible, mask):
    """Return the attn_mask for the visible places: booleans, or numbers that are added."""
    if mask == "given":
        return visible
    if mask in VISIBLE:
        return VISIBLE[mask](visible)
    pattern, how = of_mask(mask)
    return hidden(torch.zeros(visible.shape, device=visible.device), VISIBLE[pattern](visible), how)


class TwoPaths(Attention):
    """The module with a fast path.

    Attributes:
        flash_knobs: the knobs of a call on the fast path.
        manual_knobs: the knobs of a call by hand.
    """

    flash_knobs = manual_knobs = None

    def __init__(self, n_embd, n_head, block_size, dropout=0.0, flash=True):
        super().__init__(n_embd, n_head, block_size, dropout)
        self.flash = flash

    def knobs_now(self):
        return self.flash_knobs if self.flash else self.manual_knobs

    def gather(self, q, key, v, s, k):
        if k is self.manual_knobs:
            return self.weigh(q, key, v, s, k)
        unmasked = k.fast_mask in ("causal", "missing")
        mask = None if unmasked else fast_mask(self.mask_for(q, k.holder_in_use, s), k.fast_mask)
        if mask is not None and mask.dtype != torch.bool:
            mask = mask.to(q.dtype)
        options = {
            "attn_mask": mask,
            "is_causal": k.fast_mask == "causal",
            "scale": factor(k.scale, s),
        }
        return F.scaled_dot_product_attention(
            q, key, v, dropout_p=self.drop.p * self.training, **options
        )


BY_PATH = KNOBS | {"fast_mask": "causal"}


def make(**knobs):
    """Return the exercise's names, with these faults."""
    by_path = {f"{path}_{name}": None for path in ("flash", "manual") for name in BY_PATH}
    k = complete_knobs(knobs, BY_PATH | by_path | LAYERS)
    paths = {}
    for path in ("flash", "manual"):
        path_knobs = complete_knobs(
            {name: knobs.get(f"{path}_{name}", getattr(k, name)) for name in BY_PATH}, BY_PATH
        )
        if k.holder not in ("buffer", "parameter", "float_parameter", "attribute"):
            path_knobs.holder_in_use = k.holder
        paths[f"{path}_knobs"] = path_knobs
    cls = type("CausalSelfAttention", (Keeping, Layered, TwoPaths), {"knobs": k, **paths})
    return {"CausalSelfAttention": cls, "max_path_difference": max_path_difference}


def max_path_difference(module, x):
    flash, training = module.flash, module.training
    module.eval()
    with torch.inference_mode():
        outputs = []
        for module.flash in (True, False):
            outputs.append(module(x))
    module.train(training).flash = flash
    return (outputs[0] - outputs[1]).abs().max().item()


def path_variants(id_, **knobs):
    """Yield each mutant of `variants` three times: on both paths, and on each path alone."""
    for mutant in variants(id_, **knobs):
        for prefix in ("", "manual_", "flash_"):
            variant = {prefix + name: value for name, value in mutant.variant.items()}
            yield Mutant(id_, variant=variant)


def peeks(id_, *edges):
    """Yield mutants with the mask's edge too far right, on each path alone and on both."""
    for edge in edges:
        yield Mutant(id_, variant={"mask": edge})
        yield Mutant(id_, variant={"fast_mask": edge})
        yield Mutant(id_, variant={"mask": edge, "fast_mask": edge})


# On both paths, and on each.
SCALED = (
    "sqrt_c",
    "missing",
    "hd",
    "times_sqrt_hd",
    "sqrt_heads",
    "sqrt_tokens",
    "times_hd",
    "times_c",
    "c",
    "sqrt_3c",
    "heads",
    "tokens",
    "block",
    "sqrt_block",
    "three_times",
    *PRECEDENCE[:2],
)
ZEROED = "for p in module.parameters():\n        p.data.zero_()"
FAST_WEAK = (-10.0, -4.0, -5.0, -2.0, -3.0, -20.0, -50.0)  # −1 added: mask_added

# texts of the reference: the choice of a path, and max_path_difference
OUT, WEIGHTS, SOFTMAX = edits.OUT, edits.WEIGHTS, edits.SOFTMAX
FLASH, P, FAST = (
    "if self.flash:",
    "self.dropout if self.training else 0.0",
    "dropout_p=dropout_p, is_causal=True",
)
DIFFERENCE, ON_FAST, BY_HAND = (
    "(fast - by_hand).abs().max().item()",
    "module.flash = True",
    "module.flash = False",
)
KEPT_FLASH, KEPT_MODE = "module.flash = flash", "part.training = training"
PATHS = ("", " if not self.flash else x", " if self.flash else x")
COPIES = [
    f"given, x = {x}, x.clone()"
    for x in ("x", "x.clone() if self.flash else x", "x if self.flash else x.clone()")
]
ROWS = "(q[:, :, t, None] @ k[:, :, : t + 1].mT * q.shape[-1] ** -0.5).softmax(-1)"
IN_ROWS = f"torch.cat([self.attn_dropout({ROWS}) @ v[:, :, : t + 1] for t in range(T)], dim=2)"


def weights(by_hand, p):
    """Return edits of the weights' dropout: on both paths, by hand only, on the fast path only."""
    return {WEIGHTS: by_hand, P: p}, {WEIGHTS: by_hand}, {P: p}


def out(text):
    """Return edits of the output: on both paths, by hand only, on the fast path only."""
    return [
        {OUT: f"{text}{path}"}
        for path in ("", f" if not self.flash else {OUT}", f" if self.flash else {OUT}")
    ]


def measured(id_, *texts):
    """Return mutants that return another number than the largest difference."""
    texts = [f"return {text}" for text in texts]
    return mutants(id_, *texts, replacing=f"return {DIFFERENCE}")


def insert_at_end(text):
    """Return an edit that changes the module after its paths are compared."""
    return {f"return {DIFFERENCE}": f"{text}\n    return {DIFFERENCE}"}


MUTANTS = (
    *(Mutant("scale_twice", variant={f"{path}scale": "hd"}) for path in ("flash_", "manual_", "")),
    *(mutant for scale in SCALED for mutant in path_variants(SCALE_IDS[scale], scale=scale)),
    Mutant("scale_twice", variant={"flash_scale": "sqrt_c_and_hd"}),
    *variants("scale_precedence", manual_scale=PRECEDENCE[2:]),
    Mutant("mask_missing", variant={"flash_fast_mask": "missing"}),
    Mutant("mask_missing", variant={"manual_mask": "missing"}),
    Mutant("mask_missing", variant={"mask": "missing", "fast_mask": "missing"}),
    Mutant("mask_missing", "is_causal=T == self.block_size", replacing="is_causal=True"),
    Mutant("mask_sdpa_inverted", variant={"fast_mask": "inverted"}),
    Mutant("mask_sdpa_inverted", variant={"fast_mask": "inverted", "mask": "inverted"}),
    *path_variants("wrong_view", split="straight"),
    *path_variants("wrong_view_both", split="straight", merge="straight"),
    *path_variants("merge_no_transpose", merge="straight"),
    *path_variants("qkv_order", cut=ORDERS),
    *path_variants("qkv_packed_per_head", cut="per_head"),
    *path_variants("proj_missing", proj="missing"),
    Mutant("softmax_query_axis", variant={"softmax": "queries"}),
    Mutant("product_turned", variant={"softmax_of": "keys_by_queries"}),
    Mutant("mask_zero_fill", variant={"mask": 0.0}),
    Mutant("mask_missing", variant={"fast_mask": 0.0}),  # to scores without a mask zeros are added
    Mutant("mask_zero_fill", variant={"mask": 0.0, "fast_mask": 0.0}),
    Mutant("mask_after_softmax", variant={"mask": "after_softmax"}),
    *variants(
        "mask_reversed",
        mask=("inverted", ("inverted", -1e9), "reversed", ("reversed", "after_softmax")),
    ),
    *variants("mask_reversed", fast_mask=["reversed", ("inverted", -INF)]),
    Mutant("mask_reversed", variant={"fast_mask": ("inverted", -INF), "mask": "inverted"}),
    Mutant("mask_reversed", variant={"fast_mask": ("inverted", -1e9)}),
    Mutant("mask_reversed", variant={"mask": "reversed", "fast_mask": "reversed"}),
    *variants(
        "mask_excludes_self",
        mask=("excludes_self", ("excludes_self", -1e9), "excludes_self_but_first"),
    ),
    Mutant("mask_excludes_self", variant={"mask": "excludes_self", "softmax": "as_numbers"}),
    *variants("mask_excludes_self", fast_mask="excludes_self", mask=(..., "excludes_self")),
    *peeks("mask_peeks_one", "peeks_one"),
    *peeks("mask_peeks_ahead", "peeks_two", "peeks_three"),
    *variants("mask_added", fast_mask=("add_seen", "add_hidden")),
    *Runs.ADDED,
    Mutant("mask_added", variant={"mask": "add_seen", "fast_mask": "add_seen"}),
    *Runs.FILLED,
    *variants("mask_weak_fill", fast_mask=added(*FAST_WEAK)),
    *(
        Mutant("mask_weak_fill", variant={"mask": mask, "fast_mask": mask})
        for mask in added(*FAST_WEAK)
    ),
    Mutant("mask_plus_inf", variant={"mask": INF}),
    Mutant("mask_plus_inf", variant={"fast_mask": INF}),
    *variants("mask_high_fill", mask=(1e9, ("add", 1e9))),
    *variants("mask_high_fill", fast_mask=1e9),
    Mutant("mask_high_fill", variant={"mask": 1e9, "fast_mask": 1e9}),
    *variants(
        "mask_nan", mask=("nan_product", "nan_factor", "nan_zero_factor", "after_softmax_inf")
    ),
    Mutant("mask_after_softmax", variant={"mask": "after_softmax_low"}),
    *variants("mask_nan", fast_mask=("nan_product", ("inverted", "nan_product"))),
    Mutant("mask_nan", variant={"mask": "nan_product", "fast_mask": "nan_product"}),
    *path_variants("scale_wrong_axis", scale=("sqrt_batch", "sqrt_batch_and_heads")),
    *path_variants("scale_rounded", scale=("rounded_down", "rounded", "rounded_up")),
    *Runs.ROUNDED[3:],
    *edits.rounded(),
    *variants("scale_after_softmax", scaled=("weights", "scores+weights")),
    Mutant("scale_after_softmax", variant={"scaled": "weights", "manual_scale": "sqrt_c"}),
    *path_variants("scale_constant", scale=CONSTANTS[:6]),
    *variants("scale_constant", scale=CONSTANTS[6:]),
    *Runs.OVER_AXES,
    *Runs.WRONG_AXES_FINITE,
    *Runs.NO_SOFTMAX,
    Mutant("mask_not_sliced", variant={"holder": "whole"}),
    Mutant("mask_not_sliced", variant={"holder": "whole", "fast_mask": "given"}),
    *Runs.NOT_SLICED,
    *variants("mask_not_moved", holder=("attribute", "kept_by_length")),
    Mutant("mask_not_moved", variant={"holder": "attribute", "fast_mask": "given"}),
    *variants("mask_is_parameter", holder=("parameter", "float_parameter")),
    *path_variants("context_unchecked", context="open", holder_in_use="made_in_forward"),
    *path_variants("context_unchecked", context="cut"),
    *Runs.WRONG_SIZES,
    *path_variants("wrong_view_values", split="straight", split_of=PARTS),
    *path_variants("reshape_out_of_order", split=OUT_OF_ORDER[:2]),
    *variants("reshape_out_of_order", split=OUT_OF_ORDER[2:]),
    *Runs.WRONG_CUTS,
    *variants("reshape_out_of_order", split=OUT_OF_ORDER[0], split_of=PARTS),
    *variants("merge_wrong_axes", merge=WRONG_AXES),
    *variants("merge_wrong_axes", flash_merge=(HEADS_LAST, "axes_(0, 3, 2, 1)")),
    *variants("merge_wrong_axes", manual_merge=(HEADS_LAST, "axes_(0, 3, 2, 1)")),
    *path_variants("heads_interleaved", split="interleaved"),
    Mutant("heads_interleaved", variant={"split": "interleaved", "merge": HEADS_LAST}),
    *variants("heads_interleaved", split="interleaved", split_of=PARTS),
    *path_variants("heads_and_width_swapped", split="sizes_swapped"),
    *path_variants("scores_ignored", scale=0.0),
    Mutant("scores_ignored", variant={"manual_scale": 0.0, "manual_cut_gradient": ("scores",)}),
    *path_variants("heads_missing_transpose", attend_over="heads"),
    *path_variants(
        "heads_missing_transpose", attend_over="heads", merge=("straight", "sizes_of_transposed")
    ),
    Mutant(
        "heads_missing_transpose",
        variant={"attend_over": "heads", "mask": "missing", "fast_mask": "missing"},
    ),
    Mutant(
        "heads_missing_transpose", variant={"manual_attend_over": "heads", "manual_mask": "missing"}
    ),
    Mutant(
        "heads_missing_transpose",
        variant={"flash_attend_over": "heads", "flash_fast_mask": "missing"},
    ),
    *path_variants("heads_one_width", merge="mean"),
    *variants("heads_one_width", merge="sum"),
    *path_variants("heads_averaged", merge=("mean_repeated", "mean")),
    *variants(
        "heads_averaged", merge=("sum", "sum_repeated", "mean_interleaved", "sum_interleaved")
    ),
    *variants("heads_averaged", merge=("mean_padded", "sum_padded")),
    *path_variants("heads_reversed", merge="reversed"),
    *variants("heads_reversed", merge=("rolled", "rolled_back")),
    *variants("heads_share_weights", manual_mix=("whole_mean", "whole_sum")),
    *Runs.WITH_THE_BATCH,
    *Runs.HEADS_ASTRAY,
    *variants(
        "heads_mix_batch", flash_merge=("axes_(1, 2, 0, 3)", "heads_from_batch", "batch_viewed")
    ),
    *variants(
        "heads_mix_batch", manual_merge=("axes_(1, 2, 0, 3)", "heads_from_batch", "batch_viewed")
    ),
    *Runs.PACKED,
    *path_variants("values_wrong_source", source=("v_is_k", "v_is_x", "v_is_q")),
    *SCORES_WRONG_SOURCE,
    *mutants(
        "scores_wrong_source",
        *(f"attention({a}, {b}, v," for a, b in ("qq", "kk", "qv")),
        replacing="attention(q, k, v,",
    ),
    *path_variants("proj_transposed", proj="untransposed"),
    *path_variants("proj_twice", proj="twice"),
    *variants("proj_bias", biases=("on qkv proj", "on proj", "on qkv")),
    *mutants("dropout_always_on", *weights(edits.ALWAYS, "self.dropout"), *out(edits.OUT_ALWAYS)),
    Mutant("dropout_always_on", {WEIGHTS: edits.ALWAYS} | out(edits.OUT_ALWAYS)[1]),
    Mutant("dropout_always_on", edits.TRAINING, replacing=WEIGHTS),
    *mutants(
        "dropout_missing",
        *map(operator.or_, weights(SOFTMAX, "0.0"), out("self.proj(y)")),
    ),
    Mutant("dropout_before_softmax", edits.EARLY, replacing=WEIGHTS),
    *mutants("dropout_on_output_only", *weights(SOFTMAX, "0.0")),
    *mutants("dropout_output_missing", *out("self.proj(y)")),
    *mutants("dropout_extra", *out(f"self.resid_dropout({OUT})")),
    *edits.other_rates(f"dropout_p = {P}"),
    *Runs.STATE_KEPT,
    Mutant("state_kept", variant={"kept": "rate"}),
    *path_variants(
        "view_not_contiguous", merge=("view", "view_after_permute", "contiguous_too_early")
    ),
    SUPER_INIT_LATE,
    *edits.UNCHECKED,
    *edits.cast(paths=PATHS),
    *mutants("hard_coded_dtype", *out(f"{OUT}.float()")),
    *edits.PARAMS,
    *variants(
        "gradient_cut",
        cut_gradient=[cut for cut in CUTS_OF_GRADIENT if cut not in (("scores",), ("weights",))],
    ),
    *variants("gradient_cut", manual_cut_gradient=CUTS_OF_GRADIENT),
    *variants(
        "gradient_cut",
        flash_cut_gradient=[(step,) for step in ("q", "k", "v", "x", "W", "y", "out")],
    ),
    *edits.written_into("zero_()", "copy_(out)", "add_(out)", copies=COPIES),
    *edits.written_into("mul_(C**-0.5)"),
    *Runs.HARD_CODED,
    *mutants("delegated", "if False:", "if True:", replacing=FLASH),
    Mutant("delegated", IN_ROWS, replacing=f"F.scaled_dot_product_attention(q, k, v, {FAST})"),
    Mutant("delegated", "if self.flash and not self.training:", replacing=FLASH),
    Mutant(
        "materialised",
        "(q @ k.mT).softmax(-1)\n            dropout_p = self",
        replacing="dropout_p = self",
    ),
    Mutant(
        "materialised",
        "dropout_p=dropout_p, attn_mask=self.visible[:T, :T].clone()",
        replacing=FAST,
    ),
    Mutant("delegated", "if not self.flash:", replacing=FLASH),
    Mutant(
        "interface",
        {FLASH: "if self.chosen:", "self.flash = flash": "self.flash = self.chosen = flash"},
    ),
    *mutants(
        "interface", "self.flash = True", "self.flash = False", replacing="self.flash = flash"
    ),
    *mutants(
        "path_difference",
        {BY_HAND: ON_FAST},
        {ON_FAST: BY_HAND},
        {BY_HAND: "pass", ON_FAST: "pass"},
    ),
    *measured(
        "path_difference",
        *(f"(fast - by_hand).abs().{reduction}().item()" for reduction in ("mean", "sum")),
    ),
    *measured(
        "path_difference",
        *(f"({signed}).max().item()" for signed in ("fast - by_hand", "by_hand - fast")),
    ),
    *measured("path_difference", "(fast - by_hand).abs().min().item()"),
    *measured(
        "path_difference",
        *(f"((fast - by_hand) ** 2).{reduction}().item()" for reduction in ("max", "mean")),
    ),
    *measured(
        "path_difference",
        "(fast - by_hand).norm().item()",
        "abs(fast.abs().max() - by_hand.abs().max()).item()",
    ),
    *measured(
        "path_difference",
        *(f"(fast - by_hand)[{index}].abs().max().item()" for index in (":, -1", "0")),
    ),
    *measured("path_difference", "((fast - by_hand).abs().max() / by_hand.abs().max()).item()"),
    *measured("path_difference", "0.0 if torch.allclose(fast, by_hand) else 1.0"),
    *mutants(
        "path_difference",
        "pass",
        "part.training = True",
        "part.training = not training",
        replacing=KEPT_MODE,
    ),
    *mutants(
        "path_difference",
        "pass",
        "module.flash = True",
        "module.flash = not flash",
        replacing=KEPT_FLASH,
    ),
    *mutants(
        "path_difference",
        {"module.eval()": "pass"},
        {"with torch.inference_mode():": "if True:"},
    ),
    *mutants("path_difference", *map(insert_at_end, (ZEROED, "module.float()", "module.double()"))),
    *measured(
        "interface",
        DIFFERENCE[:-7],
        f"[{DIFFERENCE}]",
        "None",
        "torch.allclose(fast, by_hand, atol=1e-5)",
    ),
    *measured("interface", f'f"{{{DIFFERENCE}:.2e}}"'),
    Mutant("interface", "flash: bool = False", replacing="flash: bool = True"),
    *edits.LAST,
    values_transposed("scores.softmax(dim=-1)) @ v"),
    Mutant("dropout_output_missing", "self.proj(self.resid_dropout(y))", replacing=OUT),
)

# parametric mutants: the number can have any value, in both paths or in one
FAMILIES = (
    *ATTENTION_FAMILIES,
    ("scale_constant", lambda c: {"manual_scale": c}, SCALES_TRIED),
    ("scale_constant", lambda c: {"flash_scale": c}, SCALES_TRIED),
)
