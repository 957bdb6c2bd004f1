"""Wrong attempts at one causal head."""

from manyheads.checks import Mutant

from . import _separate_qkv as head
from ._layers import module
from ._mutants import (
    KEYS_NOT_TRANSPOSED,
    SCORES_WRONG_SOURCE,
    added_mask_kept,
    dropped_in_place,
    values_transposed,
    variants,
    written_in,
)

OUT, SOFTMAX = "weights @ v", "torch.softmax(scores, dim=-1)"
HIDING = 'scores = scores.masked_fill(~self.mask[:T, :T], float("-inf"))'


def make(**knobs):
    """Return the exercise's names, with these faults."""
    return module("CausalAttention", head.OneHead, head.KNOBS, knobs)


def renamed_layers(template):
    """Return new names for the layers; {0} stands for the first letter of query, key or value."""
    return {name: template.format(name[2]) for name in head.LAYERS}


MUTANTS = (
    *head.attention_mutants(("sqrt_d_query",), ("batch", "square", "everything")),
    *head.Runs.LAYERS,
    *head.dropouts(SOFTMAX, OUT),
    *head.Runs.INPUT,
    *head.on_the_way("T = x.shape[1]", OUT),
    *variants("hard_coded_shape", sizes=written_in(C=(2, 4, 64, 3, 8, 768))),
    *head.Runs.WRITTEN_IN,
    *variants(
        "params_not_registered",
        lost=[f"{how} {head.LAYER_SETS[0]}" for how in ("list", "tensor", "plain", "gone", "anew")],
    ),
    *head.Runs.SHARED,
    *head.more_layers(
        OUT,
        out_proj=("nn.Linear(d_out, d_out)", "self.out_proj({0})"),
        norm=head.NORM,
        temperature=head.TEMPERATURE,
    ),
    *variants(
        "params_extra",
        renamed=[renamed_layers("w_{0}"), renamed_layers("{0}_proj")],
    ),
    Mutant("interface", "class SelfAttention(", replacing="class CausalAttention("),
    Mutant("interface", f"return {OUT}, None", replacing=f"return {OUT}"),
    head.renamed(
        f"context_length: int, {head.OPTIONS}",
        "block_size: int, p: float = 0.0, bias: bool = False",
    ),
    *head.Runs.SIGNATURES,
    Mutant("hard_coded_dtype", SOFTMAX.replace("scores", "scores.float()"), replacing=SOFTMAX),
    KEYS_NOT_TRANSPOSED,
    values_transposed(),
    *SCORES_WRONG_SOURCE,
    dropped_in_place("self.dropout"),
    *added_mask_kept(HIDING, "~self.mask[:T, :T]"),
)

FAMILIES = head.Runs.FAMILIES
