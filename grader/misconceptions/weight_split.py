"""Wrong attempts at multi-head attention by weight split.

They are those at one causal head, and wrong ways to split, to merge and to project the heads.
"""

from manyheads.checks import Mutant

from . import _head_edits as heads
from . import _separate_qkv as head
from ._layer_edits import ANEW, AS_PLAIN_ATTRIBUTE, AS_STORED, layer_edit
from ._mutants import (
    SCORES_WRONG_SOURCE,
    added_mask_kept,
    dropped_in_place,
    mutants,
    values_transposed,
)
from ._steps import FAMILIES as NUMBERS
from ._steps import NO_MASK, families, of_reference

# Texts of the reference.
PROJ = "self.out_proj = nn.Linear(d_out, d_out)"
JOINED = "context.contiguous().view(B, T, self.num_heads * self.head_dim)"
STEPS = {
    "SIZES": "B, T, _ = x.shape",
    "PROJECTED": "q = q.view(",
    "SCALE": "/ self.head_dim**0.5",
    "MASKING": "scores = scores.masked_fill",
    "HIDDEN": "self.future[:T, :T]",
    "FILL": 'float("-inf")',
    "SOFTMAX": "scores.softmax(dim=-1)",
    "OUT": "self.out_proj(context)",
    "BUFFER": 'self.register_buffer("future", future, persistent=False)',
    "VISIBLE": "(~self.future[:T, :T])",
    "X_AS_VALUES": "x.view(B, T, self.num_heads, self.head_dim).transpose(1, 2)",
    "mask": "future",
    "visible": "(~future)",
    "hd": "self.head_dim",
    "nh": "self.num_heads",
    "C": "(self.num_heads * self.head_dim)",
}
LAYERS = head.LAYERS | {"out_proj": ("nn.Linear(d_out, d_out)", "context")}
# Averages of the heads, which keep the width of one.
AVERAGED = [{heads.TRANSPOSED: f"v).{mean}", JOINED: "context"} for mean in heads.AVERAGED]

# Edits with which heads, not tokens, attend to each other: the mask has the size of the scores.
MASK_LIKE_SCORES = {"[:T, :T]": "[: scores.shape[-2], : scores.shape[-1]]"}


def split_edit(text, roles="qkv"):
    """Return an edit that splits these of q, k and v in another way, as in `_head_edits`."""
    edit = {}
    for t in roles:
        reference = f"{t} = {heads.HEADS.format(t=t, T='T')}.transpose(1, 2)"
        edit[reference] = f"{t} = {text.format(t=t, T='T')}"
    return edit


def tokens_first(edit):
    return split_edit(heads.HEADS) | edit


def all_heads_mixed(mean):
    """Return an edit in which the mean (or the sum) of the heads' weights weighs all values."""
    all_values = "v.transpose(1, 2).flatten(2)[:, None]"
    return {heads.TRANSPOSED: f"{all_values}).{mean}(1)"}


TEMPLATES = (
    *head.attention_mutants(several=True),
    *mutants(
        "divisibility_unchecked",
        "if False:",
        "if d_in % num_heads != 0:",
        "if context_length % num_heads != 0:",
        replacing="if d_out % num_heads != 0:",
    ),
    Mutant("wrong_view", split_edit(heads.STRAIGHT)),
    Mutant("wrong_view_both", split_edit(heads.STRAIGHT) | heads.MERGED_STRAIGHT),
    *mutants(
        "wrong_view_values",
        *(split_edit(heads.STRAIGHT, roles) for roles in heads.PARTS),
        *(split_edit(heads.STRAIGHT, roles) | heads.MERGED_STRAIGHT for roles in heads.PARTS),
    ),
    *mutants("reshape_out_of_order", *(split_edit(heads.HD_FIRST, role) for role in "kqv")),
    Mutant("merge_no_transpose", heads.MERGED_STRAIGHT),
    *mutants("merge_wrong_axes", *heads.permutation_text("0321", "0132", "0231")),
    Mutant("heads_interleaved", heads.LAST_AXES),
    *mutants("merge_wrong_axes", *heads.permutation_text("0312", "2013", "1023", "1203", "2103")),
    *mutants(
        "heads_interleaved",
        split_edit(heads.INTERLEAVED),
        split_edit(heads.INTERLEAVED) | heads.LAST_AXES,
        *(split_edit(heads.INTERLEAVED, roles) for roles in heads.PARTS),
    ),
    *mutants(
        "heads_and_width_swapped",
        split_edit(heads.SIZES_SWAPPED),
        split_edit(heads.SIZES_SWAPPED) | {"{SCALE}": "/ {nh} ** 0.5"},
    ),
    *mutants(
        "heads_missing_transpose",
        tokens_first(MASK_LIKE_SCORES | heads.MERGED_STRAIGHT),
        tokens_first(MASK_LIKE_SCORES),
        tokens_first(NO_MASK | heads.MERGED_STRAIGHT),
        tokens_first(NO_MASK),
        *(split_edit(heads.HEADS, roles) for roles in ("qkv", "v", "q", "k", "qk")),
    ),
    *mutants("heads_one_width", *AVERAGED),
    *mutants("heads_averaged", *AVERAGED, *heads.merges(*heads.AVERAGED_AGAIN)),
    *mutants("heads_share_weights", all_heads_mixed("mean"), all_heads_mixed("sum")),
    Mutant(
        "size_wrong_axis",
        "context.reshape(B, self.num_heads, T * self.head_dim)",
        replacing=JOINED,
    ),
    *mutants("heads_reversed", *heads.REVERSED),
    *mutants(
        "heads_mix_batch",
        split_edit(heads.STRAIGHT),
        split_edit(heads.BATCH_AFTER_HEADS),
        split_edit(heads.BATCH_SWAPPED),
        heads.BATCH_VIEWED,
        split_edit(heads.BATCH_AFTER_HEADS) | heads.BATCH_VIEWED,
        split_edit(heads.BATCH_AFTER_HEADS) | heads.MERGED_STRAIGHT,
    ),
    Mutant("proj_missing", "context", replacing="{OUT}"),
    Mutant("proj_missing", {PROJ: "", "{OUT}": "context"}),
    Mutant("proj_transposed", AS_STORED.format("out_proj", "context"), replacing="{OUT}"),
    Mutant("proj_twice", "self.out_proj({OUT})", replacing="{OUT}"),
    Mutant("proj_bias", PROJ.replace(")", ", bias=False)"), replacing=PROJ),
    Mutant("proj_bias", PROJ.replace(")", ", bias=qkv_bias)"), replacing=PROJ),
    *mutants(
        "proj_bias",
        "nn.functional.linear(context, self.out_proj.weight)",
        "{OUT} + (self.num_heads - 1) * self.out_proj.bias",
        replacing="{OUT}",
    ),
    Mutant("view_not_contiguous", "context.view", replacing="context.contiguous().view"),
    Mutant("view_not_contiguous", split_edit(heads.NOT_CONTIGUOUS)),
    *head.Runs.LAYERS,
    *head.Runs.DROPOUT,
    *head.Runs.INPUT,
    *head.Runs.ON_THE_WAY,
    *head.wrong_view_mutants(T=["self.context_length"], C=(4, 12, 64, 8, 16, 768)),
    *mutants(
        "hard_coded_shape",
        *(
            {"self.num_heads = num_heads": f"num_heads = self.num_heads = {n}"}
            for n in (2, 4, 3, 8, 12, 6, 1)
        ),
        *(
            {
                "self.num_heads = num_heads": f"self.num_heads = d_out // {n}",
                "d_out // num_heads": "d_out // max(self.num_heads, 1)",
            }
            for n in (64, 2, 4, 8, 3, 16)
        ),
    ),
    *head.Runs.WRITTEN_IN,
    *head.not_registered(LAYERS),
    *mutants(
        "params_not_registered",
        layer_edit(LAYERS, "o", *ANEW),
        layer_edit(LAYERS, "o", *AS_PLAIN_ATTRIBUTE),
        split_edit(heads.FIRST_FOR_ALL),
    ),
    *head.Runs.SHARED,
    *head.more_layers(
        c_attn=("nn.Linear(d_in, 3 * d_out)", "{OUT}"),
        norm=head.NORM,
        temperature=head.TEMPERATURE,
    ),
    *head.renaming_mutants(
        "w_q w_k w_v w_o",
        "W_query W_key W_value proj",
        "q_proj k_proj v_proj o_proj",
        layers=LAYERS,
    ),
    Mutant("interface", "class MHA(", replacing="class MultiHeadAttention("),
    Mutant("interface", "return {OUT}, None", replacing="return {OUT}"),
    Mutant(
        "interface",
        "dropout: float, num_heads: int",
        replacing="num_heads: int, dropout: float = 0.0",
    ),
    head.arguments_renamed(
        f"context_length: int, num_heads: int, {head.OPTIONS}",
        "block_size: int, n_head: int, p: float = 0.0, bias: bool = False",
    ),
    *head.Runs.SIGNATURES,
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
    *added_mask_kept("scores = scores.masked_fill({HIDDEN}, {FILL})", "{HIDDEN}"),
)

MUTANTS = of_reference(TEMPLATES, **STEPS)
FAMILIES = families(NUMBERS, **STEPS)
