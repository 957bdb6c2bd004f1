"""The wrong ways to attend with a fused projection, and to make GPT-2's attentions."""

import torch
import torch.nn.functional as F

from manyheads.checks import edit

from ._attention import HEADS_LAST, MERGES, ORDERS, WRONG_AXES
from ._attention_module import CUTS_OF_GRADIENT, OF_FORWARD, OF_INIT, Attention, by_sdpa
from ._attention_mutants import ATTENTION_FAMILIES, CONSTANTS, PARTS, WRONG_VIEWS, Runs, each
from ._kept import Keeping
from ._mutants import HEADS_NOT_JOINED, KEYS_NOT_TRANSPOSED, at, dropped_in_place, known
from ._scaling import PRECEDENCE, scales


class Delegating(Attention):
    """The same, where PyTorch may do the work."""

    def gather(self, q, key, v, s, k):
        if k.delegated != "no":
            return DELEGATES[k.delegated](self, q, key, v)
        return self.weigh(q, key, v, s, k)


def by_sdpa_math(self, q, k, v):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return by_sdpa(self, q, k, v)


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


DELEGATES = {"sdpa": by_sdpa, "sdpa_math": by_sdpa_math, "multi_head": by_multi_head}

GPT2 = {"small": (768, 12), "medium": (1024, 16), "large": (1280, 20), "xl": (1600, 25)}
OWN = {"delegated": "no"}


def make(**knobs):
    """The exercise's names, with these faults."""
    k = known(knobs, OF_INIT | OF_FORWARD | OWN)
    k.holder_in_use = k.holder
    cls = type("CausalSelfAttention", (Keeping, Delegating), {"knobs": k})

    def gpt2_attention(size):
        if size not in GPT2:
            raise ValueError(f"no GPT-2 of size {size!r}; there are {', '.join(GPT2)}")
        return cls(*GPT2[size], 1024)

    return {"CausalSelfAttention": cls, "gpt2_attention": gpt2_attention}


# Texts of the reference.
MEDIUM, LARGE, XL, CHOSEN = "(1024, 16)", "(1280, 20)", "(1600, 25)", "n_embd, n_head = sizes[size]"
UNKNOWN = "raise ValueError(f\"no GPT-2 of size {size!r}; there are {', '.join(sizes)}\")"

MUTANTS = (
    *scales("sqrt_c", "missing"),
    ("mask_missing", {"mask": "missing"}),
    ("wrong_view", {"split": "straight"}),
    ("wrong_view_both", {"split": "straight", "merge": "straight"}),
    ("merge_no_transpose", {"merge": "straight"}),
    ("scale_no_sqrt", {"scale": "hd"}),
    ("scale_twice", {"scale": "hd", "scaled": "scores+scores"}),
    *each("qkv_order", cut=ORDERS),
    ("qkv_packed_per_head", {"cut": "per_head"}),
    ("proj_missing", {"proj": "missing"}),
    ("scores_ignored", {"scale": 0.0}),
    ("scores_ignored", {"scale": 0.0, "cut_gradient": ("scores",)}),
    *Runs.LIKELY,
    *scales("times_sqrt_hd", "times_hd", *PRECEDENCE, "sqrt_heads", "sqrt_tokens", "sqrt_block"),
    *scales("sqrt_3c", "c", "heads", "tokens", "three_times", "sqrt_batch", "sqrt_batch_and_heads"),
    *Runs.ROUNDED,
    *each("scale_after_softmax", scaled=("weights", "scores+weights")),
    ("scale_after_softmax", {"scaled": "weights", "scale": "sqrt_c"}),
    *each("scale_constant", scale=CONSTANTS),
    *Runs.AXES_MASKED_OR_NOT,
    ("softmax_query_axis", {"softmax": "queries", "mask": "missing"}),
    *Runs.NO_SOFTMAX,
    *each("mask_reversed", mask=(("inverted", -1e9), "reversed")),
    ("mask_reversed", {"mask": ("reversed", "after_softmax")}),
    *each("mask_excludes_self", mask=(("excludes_self", -1e9), "excludes_self_but_first")),
    ("mask_excludes_self", {"mask": "excludes_self", "softmax": "as_numbers"}),
    ("mask_peeks_one", {"mask": "peeks_two"}),
    *Runs.HIDDEN,
    *each("wrong_view", split=WRONG_VIEWS[1:]),
    *Runs.WRONG_CUTS,
    *each("wrong_view_both", split=WRONG_VIEWS[1:], merge="straight"),
    *each("wrong_view_values", split=WRONG_VIEWS, split_of=PARTS),
    *each("merge_wrong_axes", merge=WRONG_AXES),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_interleaved", {"split": "interleaved", "merge": HEADS_LAST}),
    *each("heads_interleaved", split="interleaved", split_of=PARTS),
    *each("heads_and_width_swapped", split="sizes_swapped", scale=("sqrt_hd", "sqrt_heads")),
    ("heads_missing_transpose", {"attend_over": "heads"}),
    ("heads_missing_transpose", {"attend_over": "heads", "mask": "missing"}),
    ("heads_missing_transpose", {"attend_over": "heads", "merge": "straight"}),
    ("heads_missing_transpose", {"attend_over": "heads", "holder": "whole"}),
    ("heads_missing_transpose", {"attend_over": "heads", "holder": "cut_to_tokens"}),
    ("heads_missing_transpose", {"attend_over": "heads", "mask": "missing", "merge": "straight"}),
    *each("heads_averaged", merge=[way for way in MERGES if way.startswith(("mean", "sum"))]),
    *each("heads_reversed", merge=("reversed", "rolled", "rolled_back")),
    *each("heads_averaged", mix=("whole_mean", "whole_sum")),
    *Runs.WITH_THE_BATCH,
    *Runs.HEADS_ASTRAY,
    *Runs.PACKED,
    *each("values_wrong_source", source=("v_is_k", "v_is_x", "v_is_q")),
    ("proj_transposed", {"proj": "untransposed"}),
    ("proj_twice", {"proj": "twice"}),
    *each("proj_bias", params=("both_biases", "proj_bias", "qkv_bias")),
    *each("dropout_always_on", dropout=("functional", "weights_functional", "output_functional", "kept_training")),
    ("dropout_missing", {"dropout": "missing"}),
    ("dropout_before_softmax", {"dropout": "scores"}),
    ("dropout_before_softmax", {"dropout": "scores", "output_dropout": "missing"}),
    ("dropout_on_output_only", {"dropout": "weights_missing"}),
    ("dropout_output_missing", {"dropout": "output_missing"}),
    *each("dropout_extra", dropout=("weights_twice", "output_twice")),
    *each("dropout_rate_fixed", rate=("fixed", "fixed_weights", "fixed_output")),
    *Runs.STATE_KEPT,
    *each("state_kept", kept=("rate", "answers")),
    *each("view_not_contiguous", merge=("view_after_permute", "contiguous_too_early")),
    *each("divisibility_unchecked", divisibility=("open", "of_block")),
    *each("hard_coded_dtype", entrance=("float32", "float64", "half")),
    ("hard_coded_dtype", {"returned": "float32"}),
    *Runs.PARAMS,
    *each("gradient_cut", cut_gradient=CUTS_OF_GRADIENT),
    *each("input_mutated", entrance=("zeroed", "overwritten", "residual", "scaled")),
    *Runs.HARD_CODED,
    *each("delegated", delegated=list(DELEGATES)),
    ("gpt2_sizes", edit(MEDIUM, "(1024, 24)", {LARGE: "(1280, 36)", XL: "(1600, 48)"})),  # layers for heads
    ("gpt2_sizes", edit(MEDIUM, "(1024, 24)")),
    *at(LARGE, ("gpt2_sizes", "(1280, 36)", "(1280, 16)", "(1536, 24)")),
    *at(XL, ("gpt2_sizes", "(1600, 48)", "(1600, 20)", "(2048, 32)")),
    *at("(768, 12)", ("gpt2_sizes", "(768, 8)", "(512, 8)")),
    *at(CHOSEN, ("gpt2_sizes", f"{CHOSEN}[0], 16", f"{CHOSEN}[0], 8")),
    *at(CHOSEN, ("gpt2_sizes", "n_embd, n_head = 768, 12", "n_head, n_embd = sizes[size]")),
    ("gpt2_sizes", edit('"medium": (1024', '"large": (1024', {'"large": (1280': '"medium": (1280'})),
    ("gpt2_sizes", edit("block_size=1024", "block_size=512")),
    ("argument_unchecked", edit(UNKNOWN, 'size = "small"')),
    *each("interface", returned=("with_nothing", "list", "nothing", "numpy")),
    KEYS_NOT_TRANSPOSED,
    HEADS_NOT_JOINED,
    dropped_in_place("attn_dropout"),
)

FAMILIES = ATTENTION_FAMILIES
