"""Wrong attempts at one causal head."""

from manyheads.checks import Mutant

from . import _separate_qkv as head
from ._mutants import SCORES_WRONG_SOURCE, added_mask_kept, dropped_in_place, values_transposed
from ._steps import FAMILIES as NUMBERS
from ._steps import families, of_reference

STEPS = {
    "SIZES": "T = x.shape[1]",
    "PROJECTED": "scores = q @ k",
    "SCALE": "/ math.sqrt(q.shape[-1])",
    "MASKING": "scores = scores.masked_fill",
    "HIDDEN": "~self.mask[:T, :T]",
    "FILL": 'float("-inf")',
    "SOFTMAX": "torch.softmax(scores, dim=-1)",
    "OUT": "weights @ v",
    "BUFFER": 'self.register_buffer("mask", mask)',
    "VISIBLE": "self.mask[:T, :T]",
    "X_AS_VALUES": "x",
    "mask": "mask",
    "visible": "mask",
    "hd": "q.shape[-1]",
}

TEMPLATES = (
    *head.attention_mutants(),
    *head.Runs.LAYERS,
    *head.Runs.DROPOUT,
    *head.Runs.INPUT,
    *head.Runs.ON_THE_WAY,
    *head.wrong_view_mutants(C=(2, 4, 64, 3, 8, 768)),
    *head.Runs.WRITTEN_IN,
    *head.not_registered(),
    *head.Runs.SHARED,
    *head.more_layers(
        out_proj=("nn.Linear(d_out, d_out)", "self.out_proj({OUT})"),
        norm=head.NORM,
        temperature=head.TEMPERATURE,
    ),
    *head.renaming_mutants("w_q w_k w_v", "q_proj k_proj v_proj"),
    Mutant("interface", "class SelfAttention(", replacing="class CausalAttention("),
    Mutant("interface", "return {OUT}, None", replacing="return {OUT}"),
    head.arguments_renamed(
        f"context_length: int, {head.OPTIONS}",
        "block_size: int, p: float = 0.0, bias: bool = False",
    ),
    *head.Runs.SIGNATURES,
    values_transposed(),
    *SCORES_WRONG_SOURCE,
    dropped_in_place("self.dropout"),
    *added_mask_kept("scores = scores.masked_fill({HIDDEN}, {FILL})", "{HIDDEN}"),
)

MUTANTS = of_reference(TEMPLATES, **STEPS)
FAMILIES = families(NUMBERS, **STEPS)
