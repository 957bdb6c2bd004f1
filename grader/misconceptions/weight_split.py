"""Wrong attempts at multi-head attention by weight split.

They are one causal head with heads cut from its channels.
"""

from types import SimpleNamespace

from torch import nn

from manyheads.checks import Mutant

from . import _separate_qkv as head
from ._attention import HEADS_LAST, MERGES, SPLITS
from ._attention_mutants import AXES, PARTS
from ._layers import module
from ._mutants import (
    KEYS_NOT_TRANSPOSED,
    SCORES_WRONG_SOURCE,
    added_mask_kept,
    dropped_in_place,
    mutants,
    values_transposed,
    variants,
    written_in,
)

# from (B, T, C) to (B, nh, T, hd), or to a shape that was mistaken for it
SPLIT = SPLITS | {
    "first_shared": lambda t, s: SPLITS["heads"](t, s)[:, :1].expand(-1, s.nh, -1, -1),
    "tokens_first": lambda t, s: t.view(s.B, s.T, s.nh, -1),
    "view_not_contiguous": lambda t, s: (
        SPLITS["heads"](t, s).view(s.B * s.nh, s.T, -1).unflatten(0, (-1, s.nh))
    ),
}

HEAD_KNOBS = head.KNOBS | {
    "divides": "d_out",  # what is checked: d_out, d_in, context, nothing
    "split": "heads",
    "split_only": "qkv",  # the others are split well
    "merge": "heads",
    "proj": "linear",  # linear, missing, transposed, twice
}  # sizes may hold nh and hd


class Heads(head.OneHead):
    """Several heads, with an output projection."""

    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0, qkv_bias=False):
        sizes = self.knobs.sizes
        divided = {"d_out": d_out, "d_in": d_in, "context": context_length, "nothing": 0}[
            self.knobs.divides
        ]
        if divided % num_heads:
            raise ValueError(f"{d_out} channels do not divide into {num_heads} heads")
        super().__init__(d_in, d_out, context_length, dropout, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.num_heads = sizes.get("nh", d_out // sizes["hd"] if "hd" in sizes else num_heads)

    def split(self, t, role):
        split = self.knobs.split if role in self.knobs.split_only else "heads"
        return SPLIT[split](t, SimpleNamespace(B=len(t), T=t.shape[1], nh=self.num_heads, hd=-1))

    def as_values(self, x, q):
        return x.reshape(*x.shape[:2], self.num_heads, q.shape[-1]).transpose(1, 2)

    def merge(self, out, x):
        (B, T, _), (_, nh, _, hd) = x.shape, out.shape
        out = MERGES[self.knobs.merge](out, SimpleNamespace(B=B, T=T, nh=nh, hd=hd, C=-1))
        for _ in range({"missing": 0, "twice": 2}.get(self.knobs.proj, 1)):
            out = head.project(self.out_proj, out, transposed=self.knobs.proj == "transposed")
        return out


def make(**knobs):
    """Return the exercise's names, with these faults."""
    return module("MultiHeadAttention", Heads, HEAD_KNOBS, knobs)


EVERY, OUT, PROJ = (
    " ".join((*head.LAYERS, "out_proj")),
    "self.out_proj(context)",
    "self.out_proj = nn.Linear(d_out, d_out)",
)
OTHER_NAMES = ("w_q w_k w_v w_o", "W_query W_key W_value proj", "q_proj k_proj v_proj o_proj")
LINEAR = "nn.functional.linear(context, self.out_proj.weight)"
SIZES = "context_length: int, num_heads: int"
HIDING = 'scores = scores.masked_fill(self.future[:T, :T], float("-inf"))'

MUTANTS = (
    *head.attention_mutants(("sqrt_c", "sqrt_d_query"), AXES, several=True),
    *variants("divisibility_unchecked", divides=("nothing", "d_in", "context")),
    Mutant("wrong_view", variant={"split": "straight"}),
    Mutant("wrong_view_both", variant={"split": "straight", "merge": "straight"}),
    *variants("wrong_view_values", split="straight", merge=(..., "straight"), split_only=PARTS),
    *variants("reshape_out_of_order", split_only=("k", "q", "v"), split="straight_hd_first"),
    Mutant("merge_no_transpose", variant={"merge": "straight"}),
    *variants("merge_wrong_axes", merge=("axes_(0, 3, 2, 1)", "axes_(0, 1, 3, 2)", HEADS_LAST)),
    Mutant("heads_interleaved", variant={"merge": HEADS_LAST}),
    *variants(
        "merge_wrong_axes", merge=("axes_(0, 3, 1, 2)", "axes_(2, 0, 1, 3)", "axes_(1, 0, 2, 3)")
    ),
    *variants("merge_wrong_axes", merge=("axes_(1, 2, 0, 3)", "axes_(2, 1, 0, 3)")),
    *variants("heads_interleaved", split="interleaved", merge=(..., HEADS_LAST)),
    *variants("heads_interleaved", split_only=PARTS, split="interleaved"),
    *variants("heads_and_width_swapped", scale=("sqrt_hd", "sqrt_heads"), split="sizes_swapped"),
    *variants(
        "heads_missing_transpose",
        split="tokens_first",
        holder="cut_to_scores",
        mask=(..., "all"),
        merge=("straight", ...),
    ),
    *variants(
        "heads_missing_transpose",
        split="tokens_first",
        holder="cut_to_tokens",
        split_only=(..., "v", "q", "k", "qk"),
    ),
    *variants("heads_one_width", merge=("mean", "sum")),
    *variants(
        "heads_averaged",
        merge=[
            f"{how}{suffix}"
            for suffix in ("", "_repeated", "_interleaved")
            for how in ("mean", "sum")
        ],
    ),
    *variants("heads_share_weights", mix=("whole_mean", "whole_sum")),
    Mutant("size_wrong_axis", variant={"merge": "sizes_of_transposed"}),
    *variants("heads_reversed", merge=("reversed", "rolled", "rolled_back")),
    *variants("heads_mix_batch", split=("straight", "batch_after_heads", "batch_swapped")),
    *variants("heads_mix_batch", split=(..., "batch_after_heads"), merge="batch_viewed"),
    Mutant("heads_mix_batch", variant={"split": "batch_after_heads", "merge": "straight"}),
    Mutant("proj_missing", variant={"proj": "missing"}),
    Mutant("proj_missing", {PROJ: "", OUT: "context"}),
    Mutant("proj_transposed", variant={"proj": "transposed"}),
    Mutant("proj_twice", variant={"proj": "twice"}),
    Mutant("proj_bias", variant={"biases": "off out_proj"}),
    Mutant("proj_bias", PROJ.replace(")", ", bias=qkv_bias)"), replacing=PROJ),
    *mutants(
        "proj_bias", LINEAR, f"{OUT} + (self.num_heads - 1) * self.out_proj.bias", replacing=OUT
    ),
    Mutant("view_not_contiguous", variant={"merge": "contiguous_too_early"}),
    Mutant("view_not_contiguous", variant={"split": "view_not_contiguous"}),
    *head.Runs.LAYERS,
    *head.dropouts("scores.softmax(dim=-1)", OUT),
    *head.Runs.INPUT,
    *head.on_the_way("B, T, _ = x.shape", OUT),
    Mutant("hard_coded_shape", variant={"sizes": {"context": True}}),
    *variants(
        "hard_coded_shape", sizes=written_in(C=(4, 12, 64, 8, 16, 768), nh=(2, 4, 3, 8, 12, 6, 1))
    ),
    *variants("hard_coded_shape", sizes=written_in(hd=(64, 2, 4, 8, 3, 16))),
    *head.Runs.WRITTEN_IN,
    *variants(
        "params_not_registered",
        lost=[f"{how} {EVERY}" for how in ("list", "tensor", "plain", "gone", "anew")],
    ),
    *variants("params_not_registered", lost=("anew out_proj", "plain out_proj")),
    Mutant("params_not_registered", variant={"split": "first_shared"}),
    *head.Runs.SHARED,
    *head.more_layers(
        OUT,
        c_attn=("nn.Linear(d_in, 3 * d_out)", "{0}"),
        norm=head.NORM,
        temperature=head.TEMPERATURE,
    ),
    *variants(
        "params_extra",
        renamed=[dict(zip(EVERY.split(), names.split(), strict=True)) for names in OTHER_NAMES],
    ),
    Mutant("interface", "class MHA(", replacing="class MultiHeadAttention("),
    Mutant("interface", f"return {OUT}, None", replacing=f"return {OUT}"),
    Mutant(
        "interface",
        "dropout: float, num_heads: int",
        replacing="num_heads: int, dropout: float = 0.0",
    ),
    head.renamed(
        f"{SIZES}, {head.OPTIONS}",
        "block_size: int, n_head: int, p: float = 0.0, bias: bool = False",
    ),
    *head.Runs.SIGNATURES,
    Mutant(
        "hard_coded_dtype", "scores.float().softmax(dim=-1)", replacing="scores.softmax(dim=-1)"
    ),
    KEYS_NOT_TRANSPOSED,
    *SCORES_WRONG_SOURCE,
    Mutant(
        "heads_not_joined", "", replacing=".contiguous().view(B, T, self.num_heads * self.head_dim)"
    ),
    # as after step 2
    Mutant(
        "heads_not_joined",
        "return weights @ v",
        replacing="context = (weights @ v).transpose(1, 2)",
    ),
    dropped_in_place("self.dropout"),
    values_transposed(),
    *added_mask_kept(HIDING, "self.future[:T, :T]"),
)

FAMILIES = head.Runs.FAMILIES
