"""The wrong ways to attend with a fused projection, and to make GPT-2's attentions."""

import torch
import torch.nn.functional as F

from ._attention import MERGES, ORDERS
from ._attention_module import CUTTERS, OF_FORWARD, OF_INIT, Attention, by_sdpa
from ._attention_mutants import ATTENTION_FAMILIES, CONSTANTS, PARTS, WRONG_VIEWS, Runs, each
from ._kept import Keeping
from ._masking import HEADS_NOT_JOINED, KEYS_NOT_TRANSPOSED, PRECEDENCE, dropped_in_place, known, scales


class Delegating(Attention):
    """The same, where PyTorch may do the work."""

    def gather(self, q, key, v, s, k):
        if k.delegated != "no":
            return DELEGATES[k.delegated](self, q, key, v)
        return self.weigh(q, key, v, s, k)


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
            size = unknown
        return cls(*table[size], block)

    return gpt2_attention


OWN = {"delegated": "no", "gpt2": "right", "gpt2_block": 1024, "gpt2_unknown": "listed"}


def make(**knobs):
    """The exercise's names, with these faults."""
    k = known(knobs, OF_INIT | OF_FORWARD | OWN)
    k.holder_in_use = k.holder
    cls = type("CausalSelfAttention", (Keeping, Delegating), {"knobs": k})
    return {"CausalSelfAttention": cls, "gpt2_attention": factory(cls, k.gpt2, k.gpt2_block, k.gpt2_unknown)}


MUTANTS = (
    *scales("sqrt_c", "missing"),
    ("mask_missing", {"mask": "missing"}),
    ("wrong_view", {"split": "straight"}),
    ("wrong_view_both", {"split": "straight", "merge": "straight"}),
    ("merge_no_transpose", {"merge": "straight"}),
    ("scale_no_sqrt", {"scale": "hd"}),
    ("scale_twice", {"scale": "hd", "scale_place": "scores_twice"}),
    *each("qkv_order", cut=ORDERS),
    ("qkv_packed_per_head", {"cut": "per_head"}),
    ("proj_missing", {"proj": "missing"}),
    ("scores_ignored", {"scale": 0.0}),
    ("scores_ignored", {"scale": 0.0, "cut_gradient": "scores"}),
    *Runs.LIKELY,
    *scales(
        "times_sqrt_hd", "times_hd", *PRECEDENCE, "sqrt_heads", "sqrt_tokens", "sqrt_block", "sqrt_3c", "c", "heads"
    ),
    *scales("tokens", "three_times", "sqrt_batch", "sqrt_batch_and_heads"),
    *Runs.ROUNDED,
    *each("scale_after_softmax", scale_place=("after_softmax", "both_sides", "output")),
    ("scale_after_softmax", {"scale_place": "after_softmax", "scale": "sqrt_c"}),
    *each("scale_constant", scale=CONSTANTS),
    *Runs.AXES_MASKED_OR_NOT,
    ("softmax_query_axis", {"softmax": "queries", "mask": "missing"}),
    *Runs.NO_SOFTMAX,
    *each("mask_reversed", mask=("reversed_finite", "reversed_keeps_self", "reversed_past_only")),
    ("mask_reversed", {"mask": "missing", "late_mask": "upper"}),
    *each("mask_excludes_self", mask=("excludes_self_finite", "excludes_self_but_first")),
    ("mask_excludes_self", {"mask": "excludes_self", "softmax": "as_numbers"}),
    ("mask_excludes_self", {"mask": "causal", "late_mask": "past_and_sum"}),
    ("mask_peeks_one", {"mask": "peeks_two"}),
    *Runs.HIDDEN,
    *each("wrong_view", split=WRONG_VIEWS[1:]),
    *Runs.WRONG_CUTS,
    *each("wrong_view_both", split=WRONG_VIEWS[1:], merge="straight"),
    *each("wrong_view_values", split=WRONG_VIEWS, split_of=PARTS),
    *each("merge_wrong_axes", merge=[way for way in MERGES if way.startswith("axes")]),
    ("heads_interleaved", {"split": "interleaved"}),
    ("heads_interleaved", {"split": "interleaved", "merge": "axes_(2, 3, 1)"}),
    ("heads_interleaved", {"cut": "heads_innermost"}),
    ("heads_interleaved", {"cut": "heads_innermost", "merge": "axes_(2, 3, 1)"}),
    *each("heads_interleaved", split="interleaved", split_of=PARTS),
    *each("heads_and_width_swapped", split="sizes_swapped", scale=("sqrt_hd", "sqrt_heads")),
    ("heads_missing_transpose", {"attend_over": "heads"}),
    ("heads_missing_transpose", {"attend_over": "heads", "mask": "missing"}),
    ("heads_missing_transpose", {"attend_over": "heads", "merge": "straight"}),
    ("heads_missing_transpose", {"attend_over": "heads", "holder": "whole"}),
    ("heads_missing_transpose", {"attend_over": "heads", "holder": "cut_to_tokens"}),
    ("heads_missing_transpose", {"attend_over": "heads", "holder": "cut_to_tokens", "merge": "straight"}),
    ("heads_missing_transpose", {"attend_over": "heads", "mask": "missing", "merge": "straight"}),
    *each("heads_averaged", merge=[way for way in MERGES if way.startswith(("mean", "sum"))]),
    *each("heads_reversed", merge=("reversed", "rolled", "rolled_back")),
    *Runs.WHOLE_VALUES,
    *Runs.WITH_THE_BATCH,
    *Runs.HEADS_ASTRAY,
    *Runs.PACKED,
    *each("values_wrong_source", source=("v_is_k", "v_is_x", "v_is_q")),
    ("proj_transposed", {"proj": "untransposed"}),
    ("proj_twice", {"proj": "twice"}),
    *each("proj_bias", params=("both_biases", "proj_bias", "qkv_bias")),
    *each("dropout_always_on", dropout=("functional", "weights_functional", "output_functional", "kept_training")),
    ("dropout_missing", {"dropout": "missing"}),
    *each("dropout_before_softmax", dropout=("scores", "scores_before_mask")),
    *each("dropout_before_softmax", dropout=("scores", "scores_before_mask"), output_dropout="missing"),
    ("dropout_on_output_only", {"dropout": "weights_missing"}),
    ("dropout_output_missing", {"dropout": "output_missing"}),
    *each("dropout_extra", dropout=("weights_twice", "output_twice")),
    *each("dropout_rate_fixed", rate=("fixed", "fixed_weights", "fixed_output")),
    *Runs.STATE_KEPT,
    *each("state_kept", kept=("rate", "rate_of_weights", "rate_of_output", "awake", "answers")),
    *each("view_not_contiguous", merge=("view_after_permute", "contiguous_too_early")),
    *each("divisibility_unchecked", divisibility=("open", "of_block")),
    *each("hard_coded_dtype", entrance=("float32", "float64", "half")),
    ("hard_coded_dtype", {"returned": "float32"}),
    *Runs.PARAMS,
    *each("gradient_cut", cut_gradient=[place for place in CUTTERS if place != "no"]),
    *each("input_mutated", entrance=("zeroed", "overwritten", "residual", "scaled")),
    *Runs.HARD_CODED,
    *each("delegated", delegated=list(DELEGATES)),
    *each("gpt2_sizes", gpt2=[way for way in FACTORIES if way != "right"]),
    ("argument_unchecked", {"gpt2_unknown": "small"}),
    *each("gpt2_sizes", gpt2_block=(512, 2048, 1000, 256)),
    *each("interface", returned=("with_nothing", "tuple", "list", "nothing", "numpy")),
    KEYS_NOT_TRANSPOSED,
    HEADS_NOT_JOINED,
    dropped_in_place("attn_dropout"),
)

FAMILIES = ATTENTION_FAMILIES
