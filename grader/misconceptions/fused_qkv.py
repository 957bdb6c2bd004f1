"""The wrong ways to attend with a fused projection, and to make GPT-2's attentions."""

from manyheads.checks import Mutant

from . import _module_edits as edits
from ._attention import ORDERS
from ._attention_module import CUTS_OF_GRADIENT, KNOBS, Attention
from ._attention_mutants import ATTENTION_FAMILIES, CONSTANTS, OUT_OF_ORDER, PARTS, Runs
from ._layers import module
from ._mutants import (
    SCORES_WRONG_SOURCE,
    mutants,
    values_transposed,
    variants,
)
from ._scaling import PRECEDENCE, scales

GPT2 = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}


def make(**knobs):
    """Return the exercise's names, with these faults."""
    names = module("CausalSelfAttention", Attention, KNOBS, knobs)

    def gpt2_attention(size):
        if size not in GPT2:
            raise ValueError(f"no GPT-2 of size {size!r}; there are {', '.join(GPT2)}")
        return names["CausalSelfAttention"](*GPT2[size], 1024)

    return names | {"gpt2_attention": gpt2_attention}


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

MUTANTS = (
    *scales("sqrt_c", "missing"),
    Mutant("mask_missing", variant={"mask": "missing"}),
    Mutant("wrong_view", variant={"split": "straight"}),
    Mutant("wrong_view_both", variant={"split": "straight", "merge": "straight"}),
    Mutant("merge_no_transpose", variant={"merge": "straight"}),
    Mutant("scale_no_sqrt", variant={"scale": "hd"}),
    Mutant("scale_twice", variant={"scale": "hd", "scaled": "scores+scores"}),
    *variants("qkv_order", cut=ORDERS),
    Mutant("qkv_packed_per_head", variant={"cut": "per_head"}),
    Mutant("proj_missing", variant={"proj": "missing"}),
    *variants("scores_ignored", scale=0.0, cut_gradient=(..., ("scores",))),
    *Runs.LIKELY,
    *scales(
        "times_sqrt_hd",
        "times_hd",
        "times_c",
        *PRECEDENCE,
        "sqrt_heads",
        "sqrt_tokens",
        "sqrt_block",
    ),
    *scales(
        "sqrt_3c",
        "c",
        "heads",
        "tokens",
        "block",
        "three_times",
        "sqrt_batch",
        "sqrt_batch_and_heads",
    ),
    *Runs.ROUNDED,
    *edits.rounded(),
    *variants("scale_after_softmax", scaled=("weights", "scores+weights")),
    Mutant("scale_after_softmax", variant={"scaled": "weights", "scale": "sqrt_c"}),
    *variants("scale_constant", scale=CONSTANTS),
    *Runs.AXES_MASKED_OR_NOT,
    Mutant("softmax_query_axis", variant={"softmax": "queries", "mask": "missing"}),
    *Runs.NO_SOFTMAX,
    *variants(
        "mask_reversed", mask=(("inverted", -1e9), "reversed", ("reversed", "after_softmax"))
    ),
    *variants("mask_excludes_self", mask=(("excludes_self", -1e9), "excludes_self_but_first")),
    Mutant("mask_excludes_self", variant={"mask": "excludes_self", "softmax": "as_numbers"}),
    *Runs.HIDDEN,
    *variants("wrong_view_values", split="straight", split_of=PARTS),
    *variants("reshape_out_of_order", split=OUT_OF_ORDER),
    *Runs.WRONG_CUTS,
    *variants("reshape_out_of_order", split=OUT_OF_ORDER, merge="straight"),
    *variants("reshape_out_of_order", split=OUT_OF_ORDER, split_of=PARTS),
    *Runs.HEADS,
    *variants("heads_interleaved", split="interleaved", split_of=PARTS),
    *variants("heads_and_width_swapped", split="sizes_swapped", scale=("sqrt_hd", "sqrt_heads")),
    *variants(
        "heads_missing_transpose",
        attend_over="heads",
        merge=(..., "straight"),
        mask=(..., "missing"),
    ),
    *variants("heads_missing_transpose", attend_over="heads", holder=("whole", "cut_to_tokens")),
    *variants("heads_share_weights", mix=("whole_mean", "whole_sum")),
    *Runs.WITH_THE_BATCH,
    *Runs.HEADS_ASTRAY,
    *Runs.PACKED,
    *variants("values_wrong_source", source=("v_is_k", "v_is_x", "v_is_q")),
    *SCORES_WRONG_SOURCE,
    *variants("proj_bias", biases=("on qkv proj", "on proj", "on qkv")),
    *edits.DROPOUT,
    Mutant("dropout_output_missing", "self.proj(self.resid_dropout(y))", replacing=edits.OUT),
    *Runs.STATE_KEPT,
    *variants("state_kept", kept=("rate", "answers")),
    *edits.UNCHECKED,
    *edits.cast(),
    Mutant("hard_coded_dtype", "self.proj(y).float()", replacing="self.proj(y)"),
    *edits.PARAMS,
    *variants("gradient_cut", cut_gradient=CUTS_OF_GRADIENT),
    *edits.written_into("zero_()", "copy_(out)", "add_(out)", "mul_(C**-0.5)"),
    *Runs.HARD_CODED,
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

FAMILIES = ATTENTION_FAMILIES
