"""The wrong ways to attend with a fused projection, and to make GPT-2's attentions."""

from manyheads.checks import Mutant

from . import _attention_edits as edit
from . import _fused_mutants as fused
from . import _module_edits as edits
from ._attention_edits import (
    JOINED_STRAIGHT,
    OUT_OF_ORDER,
    SOME,
    combined_edits,
    scales,
    split_edit,
    splits,
)
from ._mutants import SCORES_WRONG_SOURCE, insert_before, mutants, values_transposed

# the texts of the scores and of the mask, and PyTorch's functions that can replace them
SCORES, HIDDEN = (
    "scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)",
    "scores.masked_fill(~self.visible[:T, :T], -math.inf)",
)
FUSED = "nn.functional.scaled_dot_product_attention"
FUSED_BY_MATH = f"torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)({FUSED})"
ARGUMENTS_OF_TORCH = (
    "*(t.permute(2, 0, 1, 3).reshape(T, B, C) for t in (q, k, v)), C, self.n_head, *[None] * 4,"
    " False"
)
IDENTITY = "torch.eye(C).to(x)"
WEIGHTS = ", ".join(f"{name}_proj_weight={IDENTITY}" for name in "qkv")
CALLS_OF_TORCH = (
    *(
        f"{function}(q, k, v, dropout_p=self.attn_dropout.p * self.training, is_causal=True)"
        for function in (FUSED, FUSED_BY_MATH)
    ),
    (
        f"nn.functional.multi_head_attention_forward({ARGUMENTS_OF_TORCH}, self.attn_dropout.p,"
        f" {IDENTITY}, None, self.training, None, False, ~self.visible[:T, :T], is_causal=True,"
        f" use_separate_proj_weight=True, {WEIGHTS})[0].view(T, B, self.n_head, -1).permute(1, 2,"
        " 0, 3)"
    ),
)
# Texts of gpt2_attention.
MEDIUM, LARGE, XL, CHOSEN = "(1024, 16)", "(1280, 20)", "(1600, 25)", "n_embd, n_head = sizes[size]"
UNKNOWN = "raise ValueError(f\"no GPT-2 of size {size!r}; there are {', '.join(sizes)}\")"
STEPS = edit.gradient_cuts("y", edits.OUT, "self.qkv")

MUTANTS = (
    *scales("sqrt_c", "missing"),
    Mutant("mask_missing", edit.NO_MASK),
    *splits("wrong_view", edit.STRAIGHT),
    Mutant("wrong_view_both", split_edit(edit.STRAIGHT) | JOINED_STRAIGHT),
    Mutant("merge_no_transpose", JOINED_STRAIGHT),
    *scales("hd"),
    Mutant("scale_twice", 2 * edit.SCALE, replacing=edit.SCALE),
    *mutants("qkv_order", *edit.IN_OTHER_ORDERS, replacing=edit.CUT),
    Mutant("qkv_packed_per_head", edit.PER_HEAD, replacing=edit.CUT),
    Mutant("proj_missing", "y", replacing="self.proj(y)"),
    *combined_edits("scores_ignored", [{edit.SCALE: " * 0.0"}], ({}, STEPS["scores"])),
    *fused.LIKELY,
    *scales("times_sqrt_hd", "times_hd", "times_c", *edit.PRECEDENCE),
    *scales("sqrt_heads", "sqrt_tokens", "sqrt_block", "sqrt_3c", "c", "heads", "tokens", "block"),
    *scales("three_times", "sqrt_batch", "sqrt_batch_and_heads"),
    *fused.ROUNDED,
    *edits.rounding_mutants(),
    *mutants("scale_after_softmax", *edit.LATE_SCALES),
    Mutant("scale_after_softmax", edit.late_scale(" / math.sqrt(C)")),
    *edit.factors("scale_constant", *edit.CONSTANTS),
    *fused.AXES_MASKED_OR_NOT,
    Mutant("softmax_query_axis", edit.OVER_QUERIES | edit.NO_MASK),
    *fused.NO_SOFTMAX,
    *mutants(
        "mask_reversed",
        edit.INVERTED | edit.LOW_FILL,
        edit.REVERSED_MASK,
        edit.REVERSED_MASK | edit.AFTER_SOFTMAX,
    ),
    *mutants(
        "mask_excludes_self",
        edit.WITHOUT_SELF | edit.LOW_FILL,
        edit.WITHOUT_SELF_BUT_FIRST,
        edit.WITHOUT_SELF | edit.AS_NUMBERS,
    ),
    *fused.mask_mutants("weights"),
    *splits("wrong_view_values", edit.STRAIGHT, tensors=SOME),
    *splits("reshape_out_of_order", *OUT_OF_ORDER),
    *fused.WRONG_CUTS,
    *combined_edits("reshape_out_of_order", map(split_edit, OUT_OF_ORDER), [JOINED_STRAIGHT]),
    *splits("reshape_out_of_order", *OUT_OF_ORDER, tensors=SOME),
    *fused.heads("y"),
    *splits("heads_interleaved", edit.INTERLEAVED, tensors=SOME),
    *combined_edits(
        "heads_and_width_swapped",
        [split_edit(edit.SIZES_SWAPPED)],
        ({}, {edit.SCALE: " / math.sqrt(self.n_head)"}),
    ),
    *mutants("heads_missing_transpose", *edit.OVER_HEADS_OF_TOKENS),
    *mutants("heads_share_weights", *edit.SHARED_WEIGHTS),
    *fused.WITH_THE_BATCH,
    *fused.HEADS_ASTRAY,
    *fused.PACKED,
    *mutants(
        "values_wrong_source", *(f" @ {text}" for text in edit.OTHER_VALUES), replacing=" @ v"
    ),
    *SCORES_WRONG_SOURCE,
    *mutants("proj_bias", *edits.BIASES),
    *edits.DROPOUT,
    Mutant("dropout_output_missing", "self.proj(self.resid_dropout(y))", replacing=edits.OUT),
    *fused.STATE_KEPT,
    Mutant(
        "state_kept",
        insert_before(edits.SIZES, f"if not self.training:\n            {edits.NO_RATES}"),
    ),
    Mutant("state_kept", edits.known_by_shape(edits.OUT)),
    *edits.UNCHECKED,
    *edits.cast(),
    Mutant("hard_coded_dtype", "self.proj(y).float()", replacing="self.proj(y)"),
    *edits.PARAMS,
    *edit.gradients_cut(STEPS),
    *edits.written_into("zero_()", "copy_(out)", "add_(out)", "mul_(C**-0.5)"),
    *fused.HARD_CODED,
    *mutants(
        "delegated",
        *(
            {
                SCORES: "",
                f"scores = {HIDDEN}": "",
                f"weights = {edits.WEIGHTS}": "",
                "weights @ v": call,
            }
            for call in CALLS_OF_TORCH
        ),
    ),
    # layers for heads
    Mutant("gpt2_sizes", {MEDIUM: "(1024, 24)", LARGE: "(1280, 36)", XL: "(1600, 48)"}),
    Mutant("gpt2_sizes", "(1024, 24)", replacing=MEDIUM),
    *mutants("gpt2_sizes", "(1280, 36)", "(1280, 16)", "(1536, 24)", replacing=LARGE),
    *mutants("gpt2_sizes", "(1600, 48)", "(1600, 20)", "(2048, 32)", replacing=XL),
    *mutants("gpt2_sizes", "(768, 8)", "(512, 8)", replacing="(768, 12)"),
    *mutants("gpt2_sizes", f"{CHOSEN}[0], 16", f"{CHOSEN}[0], 8", replacing=CHOSEN),
    *mutants(
        "gpt2_sizes", "n_embd, n_head = 768, 12", "n_head, n_embd = sizes[size]", replacing=CHOSEN
    ),
    Mutant(
        "gpt2_sizes", {'"medium": (1024': '"large": (1024', '"large": (1280': '"medium": (1280'}
    ),
    Mutant("gpt2_sizes", "block_size=512", replacing="block_size=1024"),
    Mutant("argument_unchecked", 'size = "small"', replacing=UNKNOWN),
    *edits.LAST,
    values_transposed(),
    *edits.ADDED_MASK_KEPT,
    # as after step 2
    Mutant("heads_not_joined", "return y", replacing="y = y.transpose(1, 2).reshape(B, T, C)"),
)

FAMILIES = fused.FAMILIES
