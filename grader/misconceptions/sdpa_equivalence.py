"""The wrong ways to attend on two paths and to compare them.

Before and after the choice of the path both share their lines: an edit there holds on one path
alone if it asks for `self.flash`.
"""

import operator

from manyheads.checks import Mutant

from . import _attention_edits as edit
from . import _fused_mutants as fused
from . import _module_edits as edits
from ._attention_edits import CUT, JOINED, OUT_OF_ORDER, SOME, replacements, split_edit, splits
from ._mutants import (
    SCALES_TRIED,
    SCORES_WRONG_SOURCE,
    SUPER_INIT_LATE,
    insert_before,
    mutants,
    values_transposed,
)

# The fast path's scale is an argument of PyTorch's function, and so is its mask.
DROPOUT, CAUSAL = "dropout_p=dropout_p", "is_causal=True"
ALL = "torch.ones(T, T, dtype=torch.bool, device=x.device)"
PAST, FUTURE = f"{ALL}.tril()", f"{ALL}.triu(1)"


def by_hand(changes):
    """Return the edit with these changes of expressions on the path by hand alone."""
    return {old: f"({new} if not self.flash else {old})" for old, new in changes.items()}


def on_flash(changes):
    """Return the edit with these changes of expressions on the fast path alone."""
    return {old: f"({new} if self.flash else {old})" for old, new in changes.items()}


def on_paths(id_, *changes):
    """Yield three mutants for each edit: on both paths, by hand alone, on the fast path alone."""
    for edit_of_both in changes:
        yield from mutants(id_, edit_of_both, by_hand(edit_of_both), on_flash(edit_of_both))


def fast_scale(text):
    """Return the edit by which the fast path multiplies or divides in this way."""
    return {DROPOUT: f"{DROPOUT}, scale=1{text}"}


def both_scales(text):
    """Return the edit by which both paths multiply or divide in this way."""
    return {edit.SCALE: text} | fast_scale(text)


def scales_on_paths(id_, *texts):
    """Yield mutants with another scale: on both paths, by hand alone, on the fast path alone."""
    for text in texts:
        yield from mutants(id_, both_scales(text), {edit.SCALE: text}, fast_scale(text))


def fast_mask(*texts):
    """Return edits that give the fast path these masks."""
    return replacements(CAUSAL, *(f"attn_mask={text}" for text in texts))


def fast_fill(mask, *numbers):
    """Return edits that add these numbers to the masked scores of the fast path."""
    zeros = "torch.zeros(T, T, device=x.device)"
    return fast_mask(*(f"{zeros}.masked_fill({mask}, {number}).to(x)" for number in numbers))


def peeks(id_, *edges):
    """Yield mutants with the edge of a mask too far right, for each path and for both paths."""
    for edge in edges:
        scores, (flash,) = {edit.TRIL: f".tril({edge})"}, fast_mask(f"{ALL}.tril({edge})")
        yield from mutants(id_, scores, flash, scores | flash)


# On both paths, and on each.
SCALED = (
    *("sqrt_c", "missing", "hd", "times_sqrt_hd", "sqrt_heads", "sqrt_tokens", "times_hd"),
    *("times_c", "c", "sqrt_3c", "heads", "tokens", "block", "sqrt_block", "three_times"),
    *edit.PRECEDENCE[:2],
)
PLUS_INF = "math.inf"
NO_FAST_MASK = {CAUSAL: "is_causal=False"}
FAST_INVERTED, FAST_REVERSED, FAST_WITHOUT_SELF, FAST_GIVEN = fast_mask(
    FUTURE, f"{ALL}.triu()", f"{ALL}.tril(-1)", edit.MASK
)
FAST_ADD_SEEN, FAST_ADD_HIDDEN, FAST_NAN, FAST_NAN_INVERTED = fast_mask(
    f"{PAST}.to(x)",
    f"{FUTURE}.to(x)",
    f"{FUTURE}.to(x) * {edit.INF}",
    f"{PAST}.to(x) * {edit.INF}",
)
ZEROED = "for p in module.parameters():\n        p.data.zero_()"
FAST_WEAK = (-10.0, -4.0, -5.0, -2.0, -3.0, -20.0, -50.0)  # −1 added: mask_added

# texts of the reference: the choice of a path, and max_path_difference
OUT, WEIGHTS, SOFTMAX = edits.OUT, edits.WEIGHTS, edits.SOFTMAX
FLASH, P, FAST = (
    "if self.flash:",
    "self.dropout if self.training else 0.0",
    f"{DROPOUT}, {CAUSAL}",
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


def output_edits(text):
    """Return edits of the output: on both paths, by hand only, on the fast path only."""
    return [
        {OUT: f"{text}{path}"}
        for path in ("", f" if not self.flash else {OUT}", f" if self.flash else {OUT}")
    ]


def difference_mutants(id_, *texts):
    """Return mutants that return another number than the largest difference."""
    texts = [f"return {text}" for text in texts]
    return mutants(id_, *texts, replacing=f"return {DIFFERENCE}")


def insert_at_end(text):
    """Return an edit that changes the module after its paths are compared."""
    return {f"return {DIFFERENCE}": f"{text}\n    return {DIFFERENCE}"}


STRAIGHT, JOINED_STRAIGHT = split_edit(edit.STRAIGHT), edit.JOINED_STRAIGHT
SWAPPED = split_edit(edit.SIZES_SWAPPED)
HEADS_ASIDE, HEADS_LAST = f"y.permute(0, 3, 2, 1){edit.TO_CHANNELS}", edit.HEADS_LAST
NOT_TRANSPOSED = edit.NOT_TRANSPOSED_AT_ALL  # heads and tokens
FAST_ARGUMENTS = "attention(q, k, v,"
PAST_FILLED = fast_fill(PAST, edit.INF)[0]
OPEN, CUT_X = {edit.TOO_LONG: "False"}, "x, T = x[:, : self.block_size], self.block_size"
# Edits that cut the gradient, for each path and for both paths.
STEPS = edit.gradient_cuts("y", OUT, "self.qkv")
SHARED_STEPS = ("x", "W", "y", "proj", "out")
STEPS_BY_HAND = STEPS | {step: by_hand(STEPS[step]) for step in SHARED_STEPS}
STEPS_OF_BOTH = STEPS | {t: {f"{t} = {t}": f"{t} = {t}.detach()"} for t in "qkv"}
STEPS_ON_FLASH = [
    *replacements(
        FAST_ARGUMENTS,
        "attention(q.detach(), k, v,",
        "attention(q, k.detach(), v,",
        "attention(q, k, v.detach(),",
    ),
    *(on_flash(STEPS[step]) for step in ("x", "W", "y", "out")),
]


def values_wrong_source(*texts):
    """Yield mutants that mix these in place of the values, on both paths and on each."""
    for text in texts:
        scores, flash = {" @ v": f" @ {text}"}, {FAST_ARGUMENTS: f"attention(q, k, {text},"}
        yield from mutants("values_wrong_source", scores | flash, scores, flash)


MUTANTS = (
    *mutants(
        "scale_twice",
        fast_scale(" / self.head_dim"),
        {edit.SCALE: " / self.head_dim"},
        both_scales(" / self.head_dim"),
    ),
    *(
        mutant
        for id_, text in map(edit.SCALES.get, SCALED)
        for mutant in scales_on_paths(id_, text)
    ),
    Mutant("scale_twice", fast_scale(" / math.sqrt(C * self.head_dim)")),
    *edit.scales(*edit.PRECEDENCE[2:]),
    Mutant("mask_missing", NO_FAST_MASK),
    Mutant("mask_missing", edit.NO_MASK),
    Mutant("mask_missing", edit.NO_MASK | NO_FAST_MASK),
    Mutant("mask_missing", "is_causal=T == self.block_size", replacing=CAUSAL),
    *mutants("mask_sdpa_inverted", FAST_INVERTED, FAST_INVERTED | edit.INVERTED),
    *on_paths("wrong_view", STRAIGHT),
    *on_paths("wrong_view_both", STRAIGHT | JOINED_STRAIGHT),
    *on_paths("merge_no_transpose", JOINED_STRAIGHT),
    *on_paths("qkv_order", *replacements(CUT, *edit.IN_OTHER_ORDERS)),
    *on_paths("qkv_packed_per_head", {CUT: edit.PER_HEAD}),
    *on_paths("proj_missing", {"self.proj(y)": "y"}),
    Mutant("softmax_query_axis", edit.OVER_QUERIES),
    Mutant("product_turned", "k @ q.transpose(-2, -1)", replacing=fused.PRODUCT),
    Mutant("mask_zero_fill", edit.ZERO_FILL),
    # To scores without a mask, zeros are added.
    *mutants("mask_missing", *fast_fill(FUTURE, 0.0)),
    Mutant("mask_zero_fill", edit.ZERO_FILL | fast_fill(FUTURE, 0.0)[0]),
    Mutant("mask_after_softmax", edit.AFTER_SOFTMAX),
    *mutants(
        "mask_reversed",
        edit.INVERTED,
        edit.INVERTED | edit.LOW_FILL,
        edit.REVERSED_MASK,
        edit.REVERSED_MASK | edit.AFTER_SOFTMAX,
        FAST_REVERSED,
        PAST_FILLED,
        edit.INVERTED | PAST_FILLED,
        *fast_fill(PAST, -1e9),
        edit.REVERSED_MASK | FAST_REVERSED,
    ),
    *mutants(
        "mask_excludes_self",
        edit.WITHOUT_SELF,
        edit.WITHOUT_SELF | edit.LOW_FILL,
        edit.WITHOUT_SELF_BUT_FIRST,
        edit.WITHOUT_SELF | edit.AS_NUMBERS,
        FAST_WITHOUT_SELF,
        edit.WITHOUT_SELF | FAST_WITHOUT_SELF,
    ),
    *peeks("mask_peeks_one", 1),
    *peeks("mask_peeks_ahead", 2, 3),
    *mutants("mask_added", FAST_ADD_SEEN, FAST_ADD_HIDDEN),
    *fused.ADDED,
    Mutant("mask_added", edit.ADD_SEEN | FAST_ADD_SEEN),
    *fused.FILLED,
    *mutants("mask_weak_fill", *fast_fill(FUTURE, *FAST_WEAK)),
    *mutants(
        "mask_weak_fill",
        *map(operator.or_, edit.added_mask_edits(*FAST_WEAK), fast_fill(FUTURE, *FAST_WEAK)),
    ),
    *mutants("mask_plus_inf", *edit.fill_edits(PLUS_INF), *fast_fill(FUTURE, PLUS_INF)),
    *mutants(
        "mask_high_fill",
        *edit.fill_edits(1e9),
        *edit.added_mask_edits(1e9),
        *fast_fill(FUTURE, 1e9),
        edit.fill_edits(1e9)[0] | fast_fill(FUTURE, 1e9)[0],
    ),
    *mutants("mask_nan", *fused.NAN, fused.AFTER_SOFTMAX_NAN),
    Mutant("mask_after_softmax", edit.after_softmax(f".masked_fill(~{edit.MASK}, -1e9)")),
    *mutants("mask_nan", FAST_NAN, FAST_NAN_INVERTED, fused.NAN[0] | FAST_NAN),
    *scales_on_paths("scale_wrong_axis", *edit.FROM_BATCH),
    *scales_on_paths("scale_rounded", *edit.ROUNDED),
    *fused.ROUNDED_SCORES,
    *edits.rounding_mutants(),
    *mutants("scale_after_softmax", *edit.LATE_SCALES, edit.late_scale(" / math.sqrt(C)")),
    *scales_on_paths("scale_constant", *(f" * {number}" for number in edit.CONSTANTS[:6])),
    *mutants("scale_constant", *(both_scales(f" * {c}") for c in edit.CONSTANTS[6:])),
    *fused.OVER_AXES,
    *fused.WRONG_AXES_FINITE,
    *fused.NO_SOFTMAX,
    Mutant("mask_not_sliced", edit.WHOLE_MASK),
    Mutant("mask_not_sliced", edit.WHOLE_MASK | {CAUSAL: "attn_mask=self.visible"}),
    *fused.not_sliced(WEIGHTS),
    *fused.MASK_NOT_MOVED,
    Mutant("mask_not_moved", fused.MASK_AS_ATTRIBUTE | FAST_GIVEN),
    *fused.MASK_IS_PARAMETER,
    *mutants(
        "context_unchecked",
        fused.CONTEXT_OPEN,
        fused.CONTEXT_OPEN | by_hand(OPEN),
        on_flash(OPEN),
        fused.CONTEXT_CUT,
        *(
            {edit.REFUSED: f"{path}\n                {edit.REFUSED}\n            {CUT_X}"}
            for path in ("if self.flash:", "if not self.flash:")
        ),
    ),
    *fused.wrong_sizes(WEIGHTS),
    *on_paths("wrong_view_values", *(split_edit(edit.STRAIGHT, tensors) for tensors in SOME)),
    *on_paths("reshape_out_of_order", *map(split_edit, OUT_OF_ORDER[:2])),
    *splits("reshape_out_of_order", *OUT_OF_ORDER[2:]),
    *fused.WRONG_CUTS,
    *splits("reshape_out_of_order", OUT_OF_ORDER[0], tensors=SOME),
    *mutants("merge_wrong_axes", *edit.WRONG_AXES, replacing=JOINED),
    *mutants("merge_wrong_axes", *map(on_flash, replacements(JOINED, HEADS_LAST, HEADS_ASIDE))),
    *mutants("merge_wrong_axes", *map(by_hand, replacements(JOINED, HEADS_LAST, HEADS_ASIDE))),
    *on_paths("heads_interleaved", split_edit(edit.INTERLEAVED)),
    Mutant("heads_interleaved", split_edit(edit.INTERLEAVED) | {JOINED: HEADS_LAST}),
    *splits("heads_interleaved", edit.INTERLEAVED, tensors=SOME),
    # PyTorch's function would take the scale from the width that is swapped.
    *mutants(
        "heads_and_width_swapped",
        SWAPPED | fast_scale(edit.SCALE),
        by_hand(SWAPPED),
        on_flash(SWAPPED) | fast_scale(edit.SCALE),
    ),
    *scales_on_paths("scores_ignored", " * 0.0"),
    Mutant("scores_ignored", {edit.SCALE: " * 0.0"} | STEPS["scores"]),
    *on_paths(
        "heads_missing_transpose",
        NOT_TRANSPOSED | edit.CUT_TO_SCORES,
        edit.NOT_TRANSPOSED | edit.CUT_TO_SCORES,
        NOT_TRANSPOSED
        | edit.CUT_TO_SCORES
        | {JOINED: "y.reshape(B, self.n_head, T * self.head_dim)"},
    ),
    *mutants(
        "heads_missing_transpose",
        NOT_TRANSPOSED | edit.NO_MASK | NO_FAST_MASK,
        by_hand(NOT_TRANSPOSED) | edit.NO_MASK,
        on_flash(NOT_TRANSPOSED) | NO_FAST_MASK,
    ),
    *on_paths("heads_one_width", {JOINED: edit.AVERAGES[0]}),
    Mutant("heads_one_width", edit.AVERAGES[1], replacing=JOINED),
    *on_paths("heads_averaged", *replacements(JOINED, edit.AVERAGES[2], edit.AVERAGES[0])),
    *mutants("heads_averaged", edit.AVERAGES[1], *edit.AVERAGES[3:], replacing=JOINED),
    *on_paths("heads_reversed", {JOINED: edit.REVERSED[0]}),
    *mutants("heads_reversed", *edit.REVERSED[1:], replacing=JOINED),
    *mutants("heads_share_weights", *edit.SHARED_WEIGHTS),
    *fused.WITH_THE_BATCH,
    *fused.HEADS_ASTRAY,
    *mutants("heads_mix_batch", *map(on_flash, replacements(JOINED, *edit.MIXED_WITH_BATCH))),
    *mutants("heads_mix_batch", *map(by_hand, replacements(JOINED, *edit.MIXED_WITH_BATCH))),
    *fused.PACKED,
    *values_wrong_source(*edit.OTHER_VALUES),
    *SCORES_WRONG_SOURCE,
    *mutants(
        "scores_wrong_source",
        *(f"attention({a}, {b}, v," for a, b in ("qq", "kk", "qv")),
        replacing=FAST_ARGUMENTS,
    ),
    *on_paths("proj_transposed", {"self.proj(y)": "y @ self.proj.weight"}),
    *on_paths("proj_twice", {"self.proj(y)": "self.proj(self.proj(y))"}),
    *mutants("proj_bias", *edits.BIASES),
    *mutants(
        "dropout_always_on", *weights(edits.ALWAYS, "self.dropout"), *output_edits(edits.OUT_ALWAYS)
    ),
    Mutant("dropout_always_on", {WEIGHTS: edits.ALWAYS} | output_edits(edits.OUT_ALWAYS)[1]),
    Mutant("dropout_always_on", edits.TRAINING, replacing=WEIGHTS),
    *mutants(
        "dropout_missing",
        *map(operator.or_, weights(SOFTMAX, "0.0"), output_edits("self.proj(y)")),
    ),
    Mutant("dropout_before_softmax", edits.EARLY, replacing=WEIGHTS),
    *mutants("dropout_on_output_only", *weights(SOFTMAX, "0.0")),
    *mutants("dropout_output_missing", *output_edits("self.proj(y)")),
    *mutants("dropout_extra", *output_edits(f"self.resid_dropout({OUT})")),
    *edits.other_rates(f"dropout_p = {P}"),
    *fused.STATE_KEPT,
    Mutant(
        "state_kept",
        insert_before(
            edits.SIZES, f"if not self.training:\n            self.dropout = {edits.NO_RATES}"
        ),
    ),
    *on_paths("view_not_contiguous", *replacements(JOINED, *edit.NOT_CONTIGUOUS)),
    SUPER_INIT_LATE,
    *edits.UNCHECKED,
    *edits.cast(paths=PATHS),
    *mutants("hard_coded_dtype", *output_edits(f"{OUT}.float()")),
    *edits.PARAMS,
    *edit.gradients_cut(STEPS_OF_BOTH, "scores", "weights"),
    *edit.gradients_cut(STEPS_BY_HAND),
    *mutants("gradient_cut", *STEPS_ON_FLASH),
    *edits.written_into("zero_()", "copy_(out)", "add_(out)", copies=COPIES),
    *edits.written_into("mul_(C**-0.5)"),
    *fused.HARD_CODED,
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
    *difference_mutants(
        "path_difference",
        *(f"(fast - by_hand).abs().{reduction}().item()" for reduction in ("mean", "sum")),
    ),
    *difference_mutants(
        "path_difference",
        *(f"({signed}).max().item()" for signed in ("fast - by_hand", "by_hand - fast")),
    ),
    *difference_mutants("path_difference", "(fast - by_hand).abs().min().item()"),
    *difference_mutants(
        "path_difference",
        *(f"((fast - by_hand) ** 2).{reduction}().item()" for reduction in ("max", "mean")),
    ),
    *difference_mutants(
        "path_difference",
        "(fast - by_hand).norm().item()",
        "abs(fast.abs().max() - by_hand.abs().max()).item()",
    ),
    *difference_mutants(
        "path_difference",
        *(f"(fast - by_hand)[{index}].abs().max().item()" for index in (":, -1", "0")),
    ),
    *difference_mutants(
        "path_difference", "((fast - by_hand).abs().max() / by_hand.abs().max()).item()"
    ),
    *difference_mutants("path_difference", "0.0 if torch.allclose(fast, by_hand) else 1.0"),
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
    *difference_mutants(
        "interface",
        DIFFERENCE[:-7],
        f"[{DIFFERENCE}]",
        "None",
        "torch.allclose(fast, by_hand, atol=1e-5)",
    ),
    *difference_mutants("interface", f'f"{{{DIFFERENCE}:.2e}}"'),
    Mutant("interface", "flash: bool = False", replacing="flash: bool = True"),
    *edits.LAST,
    values_transposed("scores.softmax(dim=-1)) @ v"),
    Mutant("dropout_output_missing", "self.proj(self.resid_dropout(y))", replacing=OUT),
)

# parametric mutants: the number can have any value, in both paths or in one
FAMILIES = (
    ("scale_constant", lambda c: Mutant("", both_scales(f" * {c}")), SCALES_TRIED),
    *fused.FAMILIES[1:],
    fused.FAMILIES[0],
    ("scale_constant", lambda c: Mutant("", fast_scale(f" * {c}")), SCALES_TRIED),
)
